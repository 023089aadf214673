internal import JSON5
internal import Provider

/// What a program wants to see of the query log.
///
/// ```
/// {"queries": {}}                                      the last ones at once
/// {"queries": {"from": 17, "timeLimitSeconds": 60}}    those from number 17 on; when there is none, the next ones, or after a minute
/// ```
struct QueryLogRequest: Equatable, Sendable {
    /// How many queries one answer has at most: as many as fit into a connection's buffer whatever their names are.
    static let limit = 128

    /// The number of the first query; nil for the oldest that there is.
    var first: UInt64?
    /// How long the answer may be held when there is no such query yet.
    var timeLimit = Interval(nanoseconds: 0)

    /// A request for what there is.
    init(from first: UInt64? = nil, timeLimit: Interval = Interval(nanoseconds: 0)) {
        (self.first, self.timeLimit) = (first, timeLimit)
    }

    /// The request in a line; nil when it is something else, or not in order.
    init?(reading line: RawSpan) {
        guard let value = try? JSON5Value(reading: line), case .object(let members) = value.content,
            members.count == 1, members[0].name == "queries", case .object(let options) = members[0].value.content
        else { return nil }
        for option in options {
            guard case .integer(let number) = option.value.content, number >= 0 else { return nil }
            switch option.name {
            case "from": first = UInt64(number)
            case "timeLimitSeconds": timeLimit = .seconds(UInt64(min(number, 86_400)))
            default: return nil
            }
        }
    }

    /// The line that asks for this.
    var line: String {
        var options: [(String, JSONText)] = []
        if let first { options.append(("from", .number(first))) }
        if timeLimit.nanoseconds > 0 {
            options.append(("timeLimitSeconds", .number(timeLimit.nanoseconds / 1_000_000_000)))
        }
        return JSONText.object([("queries", .object(options))]).text + "\n"
    }
}
