internal import DNSMessage
internal import DNSProxy
internal import LDNSMessage
internal import Provider

/// Who wants queries put to servers, and is told what comes of them: the proxy, or a command that asks one question.
protocol ExchangeClient: AnyObject {
    /// Writes the query of an exchange; returns its length in bytes, nil when the exchange is over.
    func writeQuery(of exchange: ExchangeID, entropy: QueryEntropy, into output: inout MutableRawSpan) -> Int?

    /// Something came for an exchange. Returns whether the exchange is over.
    func received(
        _ answer: RawSpan, for exchange: ExchangeID, freshness: AnswerFreshness, at now: Instant
    ) -> ExchangeDisposition

    /// An exchange came to nothing.
    func failed(_ exchange: ExchangeID, _ failure: ExchangeFailure, at now: Instant)
}

/// The servers' side of the proxy.
typealias ServerSide = ServerExchanges<SharedProxy>

extension SharedProxy: ExchangeClient {
    func writeQuery(of exchange: ExchangeID, entropy: QueryEntropy, into output: inout MutableRawSpan) -> Int? {
        lock()
        defer { unlock() }
        return proxy.writeQuery(of: exchange, entropy: entropy, into: &output)
    }

    func received(
        _ answer: RawSpan, for exchange: ExchangeID, freshness: AnswerFreshness, at now: Instant
    ) -> ExchangeDisposition {
        lock()
        defer { unlock() }
        return proxy.received(answer, for: exchange, freshness: freshness, reader: SecondAnswerReader(), at: now)
    }

    func failed(_ exchange: ExchangeID, _ failure: ExchangeFailure, at now: Instant) {
        lock()
        defer { unlock() }
        proxy.failed(exchange, failure, at: now)
    }
}

/// Reads answers a second time with ldns, but for those with records of types that it cannot read: they concern no policy, and are
/// read by the view alone.
struct SecondAnswerReader: AnswerReader {
    private let ldns = LDNSAnswerReader()
    private let view = ViewAnswerReader()

    /// What policy has to know of the answer. Throws when ldns does not take it.
    func facts(of answer: borrowing DNSMessageView) throws(LDNSError) -> AnswerFacts {
        do throws(LDNSError) {
            return try ldns.facts(of: answer)
        } catch .unreadableType {
            return view.facts(of: answer)
        }
    }
}
