internal import DNSMessage
internal import Provider

/// What a program asks of the daemon over the control socket: a line of JSON each way.
///
/// ```
/// {"status": {}}                                       the status at once
/// {"status": {"after": 17, "timeLimitSeconds": 60}}    the status when its revision is no longer 17, or after a minute
/// {"queries": {}}                                      the last queries at once
/// {"queries": {"from": 17, "timeLimitSeconds": 60}}    those from number 17 on; when there is none, the next ones, or after a minute
/// {"flushDNS": {}}                                     forget all answers
/// {"flushDNS": {"name": "example.com"}}                forget those about a name and all below it
/// ```
enum ControlRequest: Equatable, Sendable {
    /// The status: when its revision is no longer `after`, and at the latest at the time limit. Without either at once.
    case status(after: UInt64?, timeLimit: Interval)
    /// A part of the log of queries.
    case queries(QueryLogRequest)
    /// Forget what is known of a name and of all below it, or with nil all that is known.
    case flushDNS(DomainName?)

    /// The longest line in bytes, its end included.
    static let maximumByteCount = 4_096

    /// What a request is told by: the name of the only member of its object.
    enum Verb: String, CaseIterable, Sendable {
        case status
        case queries
        case flushDNS
    }

    /// The members of the object behind the verb.
    enum Option: String, Sendable {
        case after
        case from
        case name
        case timeLimitSeconds
    }

    /// The line that asks for it.
    var line: String {
        let verb: Verb
        let options: [(Option, JSONText)]
        switch self {
        case .status(let revision, let timeLimit):
            verb = .status
            options = Self.number(.after, revision) + Self.timeLimit(timeLimit)
        case .queries(let request):
            verb = .queries
            options = Self.number(.from, request.first) + Self.timeLimit(request.timeLimit)
        case .flushDNS(let name):
            verb = .flushDNS
            options = name.map { [(.name, .string($0.description))] } ?? []
        }
        let members = options.map { ($0.0.rawValue, $0.1) }
        return JSONText.object([(verb.rawValue, .object(members))]).text + "\n"
    }

    private static func number(_ option: Option, _ number: UInt64?) -> [(Option, JSONText)] {
        number.map { [(option, .number($0))] } ?? []
    }

    private static func timeLimit(_ limit: Interval) -> [(Option, JSONText)] {
        limit.nanoseconds > 0 ? [(.timeLimitSeconds, .number(limit.nanoseconds / 1_000_000_000))] : []
    }
}
