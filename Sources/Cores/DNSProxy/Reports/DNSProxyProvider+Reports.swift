internal import ByteAccess
public import DNSMessage
public import Provider

extension DNSProxyProvider {
    /// Takes a client's query.
    ///
    /// - Parameters:
    ///   - bytes: The query as it came, without the length that TCP puts in front.
    ///   - client: The host's name for the query, which none that waits has.
    ///   - transport: How it came.
    ///   - output: Room for an answer: ``answerCapacity`` bytes at least.
    public mutating func handle(
        query bytes: RawSpan, from client: ClientToken, by transport: ClientTransport, at now: Instant,
        into output: inout MutableRawSpan
    ) -> Decision {
        let decision = decide(on: bytes, from: client, by: transport, at: now, into: &output)
        if case .answer = decision { results.note(counters.lastResult, transport) }
        return decision
    }

    /// What became of the query that was answered last, within the same call.
    public var lastResult: QueryResult { counters.lastResult }

    /// Why the query that was answered at once and last was answered so; nil where the result says it all.
    public var lastError: ExtendedErrorCode? {
        switch counters.lastResult {
        case .failed: .cachedError
        case .overloaded: .notReady
        case .cached, .stale, .forwarded, .blocked, .rebinding, .local, .refused: nil
        }
    }

    /// What the rule is from that blocked the query that was answered last; nil where none did.
    public var lastRuleSource: RuleSource? { counters.lastResult == .blocked ? lastBlocker : nil }

    /// What sources of rules are called, by their numbers.
    public var ruleSourceNames: [String] { composer.sourceNames }

    /// How the queries were answered that had to wait, since this was last called: in the order of the answers among the actions. There
    /// are none unless ``reportsAnswers`` is set.
    public mutating func takeReports() -> [AnswerReport] {
        if reports.isEmpty { return [] }
        let taken = reports
        reports = []
        return taken
    }

    /// What the configuration calls the servers, in its order.
    public var upstreamNames: [String] { upstreams.map(\.upstream.name) }

    /// Counts a query that a rule blocks.
    mutating func noteBlock(by source: RuleSource) {
        counters.blocked &+= 1
        lastBlocker = source
    }

    /// Counts an answer that is about to be given to one who waited, and reports it.
    mutating func note(_ waiting: WaitingQuery, _ answer: RawSpan) {
        let result = counters.lastResult
        results.note(result, waiting.transport)
        guard reportsAnswers else { return }
        reports.append(
            AnswerReport(
                client: waiting.client, transport: waiting.transport, query: waiting.aliases ?? waiting.bytes,
                arrivedAt: waiting.arrivedAt, result: result,
                responseCode: ResponseCode(rawValue: UInt16(answer.uint8(at: 3) & 0xF)),
                upstream: origin.upstream, error: origin.error, ruleSource: lastRuleSource,
                isMerged: waiting.isMerged))
    }
}
