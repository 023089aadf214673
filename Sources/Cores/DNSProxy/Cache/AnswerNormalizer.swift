internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Makes of a server's answer what is kept and given out: without what is for one hop only, without signatures that nobody asked for,
/// and with TTLs that are no longer than they may be.
struct AnswerNormalizer {
    /// The longest TTL in seconds, a week (RFC 8767 §4), and the longest that something does not exist, three hours (RFC 2308 §5).
    static let longest: (positive: UInt32, negative: UInt32) = (604_800, 10_800)

    /// True when signatures were asked for.
    let dnssecOK: Bool
    /// True when the server's word that data is authentic counts.
    let isTrusted: Bool
    /// What HTTP says about the answer's age.
    let freshness: AnswerFreshness
    /// The bounds of TTLs in seconds, for answers that have what was asked for.
    var bounds: ClosedRange<UInt32> = 0...longest.positive

    /// Writes the answer to the start of a buffer that has room for any.
    ///
    /// - Returns: Its length in bytes; nil when it cannot be written.
    func write(_ answer: borrowing DNSMessageView, into buffer: inout [UInt8]) -> Int? {
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        do throws(DNSMessageError) {
            let count = try copy(answer, into: &output)
            var flags = MessageEditing.flags(of: output)
            flags.remove([.authoritativeAnswer, .reserved])
            if !isTrusted { flags.remove(.authenticData) }
            MessageEditing.setFlags(flags, in: &output)
            if freshness.age > 0 { try MessageEditing.age(&output, by: freshness.age) }
            let kind = answer.answerKind
            let bounds = kind == .records ? bounds : 0...Self.longest.positive
            // What HTTP says wins: the answer is not to be kept for longer, whoever wishes it.
            let longest = min(freshness.lifetime ?? .max, bounds.upperBound)
            try MessageEditing.boundTimesToLive(of: &output, to: min(bounds.lowerBound, longest)...longest)
            if kind == .noData || kind == .nameError { try boundNegative(&output, count) }
            return count
        } catch {
            return nil
        }
    }

    private func copy(
        _ answer: borrowing DNSMessageView, into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        if !hasUnwantedProofs(answer) {
            if let opt = answer.optLayout, opt.endOffset == answer.bytes.byteCount {
                // Most often it is the last record: it is left out, and nothing else changes. What is signed has its TSIG behind it.
                output.copy(answer.bytes.extracting(..<opt.offset), to: 0)
                var header = answer.header
                header.additionalCount -= 1
                header.store(into: &output)
                return opt.offset
            }
            output.copy(answer.bytes, to: 0)
            do {
                return try MessageEditing.replaceOPT(in: &output, count: answer.bytes.byteCount, with: nil)
            } catch .recordsBehindOPT {
                // It has to be written anew.
            }
        }
        let type = answer.question?.type
        let keepsProofs = dnssecOK || type == .any
        var writer = MessageWriter(id: answer.header.id, flags: answer.header.flags)
        try writer.append(contentsOf: answer, into: &output) { record in
            keepsProofs || !record.type.isDNSSECProof || record.type == type
        }
        return try writer.finish(into: &output)
    }

    /// True when there are signatures that a client gets only when it asks for them (RFC 4035 §3.2.1).
    private func hasUnwantedProofs(_ answer: borrowing DNSMessageView) -> Bool {
        guard !dnssecOK, let type = answer.question?.type, type != .any else { return false }
        var records = answer.records
        while let record = records.next() {
            if record.type.isDNSSECProof, record.type != type { return true }
        }
        return false
    }

    /// Lets the SOA record of a negative answer live no longer than the answer may be kept (RFC 2308 §3).
    private func boundNegative(_ output: inout MutableRawSpan, _ count: Int) throws(DNSMessageError) {
        guard let (offset, seconds) = try Self.negative(output.bytes.extracting(..<count)) else { return }
        output.storeBigEndian(min(seconds, Self.longest.negative), at: offset)
    }

    /// Where the TTL of the SOA record of a negative answer is, and how long the answer may be kept by it; nil when there is none.
    private static func negative(_ message: RawSpan) throws(DNSMessageError) -> (offset: Int, seconds: UInt32)? {
        let view = try DNSMessageView(checking: message)
        guard let seconds = view.negativeTimeToLive else { return nil }
        var records = view.records(in: .authority)
        while let record = records.next() {
            if record.type == .soa { return (record.layout.timeToLiveOffset, seconds) }
        }
        return nil
    }

    /// For how long a written answer is kept; nil for not at all.
    static func lifetime(of message: RawSpan, _ freshness: AnswerFreshness) -> Interval? {
        guard let view = try? DNSMessageView(checking: message) else { return nil }
        switch view.cacheLifetime {
        case .positive(let seconds), .negative(let seconds):
            return seconds == 0 ? nil : .seconds(UInt64(seconds))
        case .failure, .none: return nil
        }
    }
}
