internal import DNSMessage
internal import Provider

extension StatusClient {
    /// Has the daemon forget what it knows of a name and of all below it, or with nil all that it knows.
    ///
    /// - Returns: How many answers are gone.
    public mutating func flushDNS(_ name: DNSFlushName?) throws(StatusFailure) -> Int {
        let fields = try ControlAnswer.fields(of: answer(to: .flushDNS(name?.value)))
        guard let count = fields.number("flushed") else { throw .notUnderstood }
        return Int(clamping: count)
    }

    /// Queries of the log: from the oldest on at once; with a number from that one on, when there is none yet as soon as there is, and
    /// at the latest after a minute.
    public mutating func queries(
        from number: UInt64? = nil, waits: Bool = false
    ) throws(StatusFailure) -> QueryLogReport {
        let request = QueryLogRequest(from: number, timeLimit: .seconds(waits ? 60 : 0))
        return try QueryLogReport(line: answer(to: .queries(request)))
    }
}

/// A name whose answers are to be forgotten.
public struct DNSFlushName: Equatable, Sendable {
    let value: DomainName

    /// Nil when the text is not a name (RFC 1035 §5.1).
    public init?(parsing text: String) {
        guard let name = try? DomainName(parsing: text) else { return nil }
        value = name
    }
}
