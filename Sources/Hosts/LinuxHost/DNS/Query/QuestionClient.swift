internal import ByteAccess
internal import DNSMessage
internal import DNSProxy
internal import Provider

/// Asks one question, by one exchange or several, and keeps the first answer to it.
final class QuestionClient: ExchangeClient {
    /// What came.
    enum Outcome {
        /// The answer, and by which transport it came.
        case answer([UInt8], ExchangeTransport)
        /// No exchange brought an answer; why the last one did not.
        case failed(ExchangeFailure)
    }

    private struct Attempt {
        let transport: ExchangeTransport
        /// What was sent last; empty before.
        var query: [UInt8] = []
    }

    private let question: DNSQuery
    private var attempts: [ExchangeID: Attempt] = [:]
    private var lastID: UInt64 = 0
    /// How it went; nil while it goes on.
    private(set) var outcome: Outcome?
    /// True when an answer did not fit into a datagram.
    private(set) var needsTCP = false
    /// How many answers came that were none to the question.
    private(set) var wrongAnswerCount = 0

    /// Nothing has been asked yet.
    init(_ question: DNSQuery) {
        self.question = question
    }

    /// One more exchange, to be begun.
    func makeExchange(by transport: ExchangeTransport, deadline: Instant) -> Exchange {
        lastID += 1
        needsTCP = false
        let id = ExchangeID(rawValue: lastID)
        attempts[id] = Attempt(transport: transport)
        return Exchange(
            id: id, upstream: UpstreamID(index: 0), transport: transport, needsFreshConnection: false,
            deadline: deadline)
    }

    func writeQuery(of exchange: ExchangeID, entropy: QueryEntropy, into output: inout MutableRawSpan) -> Int? {
        guard let transport = attempts[exchange]?.transport else { return nil }
        let query = OutgoingQuery(
            id: transport == .https ? 0 : entropy.id, checkingDisabled: question.options.checkingDisabled,
            wantsAuthenticData: true, edns: EDNSFields(dnssecOK: question.options.dnssecOK))
        guard let count = try? query.write(question.name.view, type: question.type, into: &output) else { return nil }
        if !question.options.recursionDesired {
            output.store(output.bytes.uint8(at: 2) & 0xFE, at: 2)
        }
        attempts[exchange]?.query = output.bytes.extracting(..<count).withBytes
        return count
    }

    func received(
        _ answer: RawSpan, for exchange: ExchangeID, freshness: AnswerFreshness, at now: Instant
    ) -> ExchangeDisposition {
        guard let attempt = attempts[exchange], outcome == nil else { return .finished }
        guard Self.isAnswer(answer, to: attempt.query) else {
            wrongAnswerCount += 1
            if attempt.transport == .udp { return .keepWaiting }
            failed(exchange, .invalidAnswer, at: now)
            return .finished
        }
        attempts[exchange] = nil
        if attempt.transport == .udp, answer.uint8(at: 2) & 0x02 != 0 {
            needsTCP = true
        } else {
            outcome = .answer(answer.withBytes, attempt.transport)
        }
        return .finished
    }

    private static func isAnswer(_ answer: RawSpan, to query: [UInt8]) -> Bool {
        guard let sent = try? DNSMessageView(checking: query.span.octets),
            let view = try? DNSMessageView(checking: answer),
            let question = sent.question
        else { return false }
        do throws(AnswerMismatch) {
            try view.check(isAnswerTo: question, id: sent.header.id)
            return true
        } catch {
            // Servers that cannot read a query repeat nothing of it.
            return error == .noQuestion && view.responseCode == .formatError
        }
    }

    func failed(_ exchange: ExchangeID, _ failure: ExchangeFailure, at now: Instant) {
        guard attempts.removeValue(forKey: exchange) != nil, outcome == nil else { return }
        if attempts.isEmpty { outcome = .failed(failure) }
    }
}

extension RawSpan {
    /// A copy of the bytes.
    fileprivate var withBytes: [UInt8] {
        // Every bit pattern is a byte.
        unsafe withUnsafeBytes { unsafe Array($0) }
    }
}
