internal import JSON5

/// A daemon's answer to who asks for its log of queries.
public struct QueryLogReport: Sendable {
    /// The number of the query behind the last one.
    public let next: UInt64
    /// How many queries that were wanted are gone.
    public let lostCount: UInt64
    /// True when there are more already.
    public let hasMore: Bool
    private let queries: [JSON5Value]

    /// Reads an answer.
    init(line: String) throws(StatusFailure) {
        let root = try ControlAnswer.fields(of: line)
        guard let next = root.number("next"), let queries = root.array("queries") else { throw .notUnderstood }
        self.next = next
        self.queries = queries
        lostCount = root.number("lost") ?? 0
        hasMore = root.boolean("more")
    }

    /// An object for each query, and one that says how many are lost when some are.
    public var jsonLines: [String] {
        let lost = lostCount > 0 ? [JSONText.object([("lost", .number(lostCount))]).text] : []
        return lost + queries.map { JSONText($0).text }
    }

    /// A line for each query, for people.
    public var textLines: [String] {
        let lost = lostCount > 0 ? ["\(lostCount) entries lost"] : []
        return lost + queries.compactMap { JSONFields($0).map(Self.line) }
    }

    private static func line(_ query: JSONFields) -> String {
        let from = query.boolean("tunnel") ? "tunnel" : query.string("transport") ?? "-"
        let words = [
            query.string("time"), from, query.string("client"), query.string("name"), query.string("type"),
            query.string("code"), outcome(query), milliseconds(query.number("microseconds") ?? 0),
        ]
        return words.map { $0 ?? "-" }.joined(separator: " ")
    }

    private static func outcome(_ query: JSONFields) -> String {
        let upstream = query.string("upstream")
        var outcome = query.string("result") ?? "-"
        var details: [String] = []
        if let rule = query.string("rule") { details.append(rule) }
        if let code = query.number("extendedError") { details.append("EDE \(code)") }
        if let upstream { details.append(upstream) }
        if query.boolean("merged") { details.append("merged") }
        if !details.isEmpty { outcome += " (\(details.joined(separator: ", ")))" }
        return outcome
    }

    private static func milliseconds(_ microseconds: UInt64) -> String {
        "\(microseconds / 1_000).\(microseconds % 1_000 / 100) ms"
    }
}
