public import DNSMessage
public import Provider

/// How a query that had to wait was answered, for who keeps a log of queries.
public struct AnswerReport: Sendable {
    /// Whose query it was.
    public let client: ClientToken
    /// How it came.
    public let transport: ClientTransport
    /// A message that begins with its header and its question.
    public let query: [UInt8]
    /// When it came.
    public let arrivedAt: Instant
    /// What became of it.
    public let result: QueryResult
    /// The code of the answer, as far as the header has it.
    public let responseCode: ResponseCode
    /// The server that answered, or that was asked last in vain; nil where none had to do with it.
    public let upstream: UpstreamID?
    /// Why servers were asked in vain.
    public let error: ExtendedErrorCode?
    /// What the rule is from that blocked it; nil where none did.
    public let ruleSource: RuleSource?
    /// True when the same question was under way already, so that none was asked for this query.
    public let isMerged: Bool
}

/// What the answer that is being given comes from.
struct AnswerOrigin: Sendable {
    var upstream: UpstreamID?
    var error: ExtendedErrorCode?
}
