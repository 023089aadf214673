internal import ByteAccess
internal import DNSMessage
internal import JSON5

/// What programs ask of the DNS proxy, over the control socket.
///
/// ```
/// {"flushDNS": {}}                          forget all answers
/// {"flushDNS": {"name": "example.com"}}     forget those about a name and all below it
/// {"flushed": 12}                           the answer: how many are gone
/// ```
enum DNSRequest: Equatable {
    /// Forget what is known of a name and of all below it, or with nil all that is known.
    case flush(DomainName?)

    /// The request in a line; nil when there is none.
    init?(in line: RawSpan) {
        guard let value = try? JSON5Value(reading: line), case .object(let members) = value.content,
            members.count == 1, members[0].name == "flushDNS", case .object(let options) = members[0].value.content
        else { return nil }
        guard let option = options.first else {
            self = .flush(nil)
            return
        }
        guard options.count == 1, option.name == "name", case .string(let text) = option.value.content,
            let name = try? DomainName(parsing: text)
        else { return nil }
        self = .flush(name)
    }

    /// The line that asks for it.
    var line: String {
        switch self {
        case .flush(let name):
            let options: [(String, JSONText)] = name.map { [("name", .string($0.description))] } ?? []
            return JSONText.object([("flushDNS", .object(options))]).text + "\n"
        }
    }
}

extension RunDaemon {
    /// Does what a program asks of the DNS proxy, and returns the line that says what came of it.
    func line(for request: DNSRequest) -> String {
        guard let dns else { return AppMessageText.failure("there is no DNS proxy") }
        switch request {
        case .flush(let name):
            return JSONText.object([("flushed", .number(dns.flushCache(of: name)))]).text + "\n"
        }
    }
}

extension StatusClient {
    /// Has the daemon forget what it knows of a name and of all below it, or with nil all that it knows.
    ///
    /// - Returns: How many answers are gone.
    public mutating func flushDNS(_ name: DNSFlushName?) throws(StatusFailure) -> Int {
        try send(DNSRequest.flush(name?.value).line)
        let line = try receive()
        guard let value = try? JSON5Value(reading: line.utf8Span.span.octets),
            case .object(let members) = value.content,
            let member = members.first
        else { throw .notUnderstood }
        switch (member.name, member.value.content) {
        case ("flushed", .integer(let count)): return count
        case ("error", .string(let reason)): throw .refused(reason)
        default: throw .notUnderstood
        }
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
