internal import ByteAccess
internal import DNSMessage
internal import DNSProxy
internal import IPPacket
internal import Provider
internal import WireGuard

// All of it is for who holds the lock.
extension SharedProxy {
    /// Notes a query that was just put to the proxy, when it was answered at once.
    @inline(__always)
    func note(
        _ decision: Decision, on query: RawSpan, _ answer: RawSpan, from client: IPAddress?,
        by transport: ClientTransport, isTunnelled: Bool = false, at now: Instant
    ) {
        guard queryLog.isOn, case .answer = decision else { return }
        noteAnswer(to: query, answer, from: client, by: transport, isTunnelled, at: now)
    }

    private func noteAnswer(
        to query: RawSpan, _ answer: RawSpan, from client: IPAddress?, by transport: ClientTransport,
        _ isTunnelled: Bool, at now: Instant
    ) {
        var entry = QueryLogEntry()
        entry.answeredAt = now
        (entry.client, entry.transport, entry.isTunnelled) = (client, transport, isTunnelled)
        (entry.result, entry.error, entry.ruleSource) = (proxy.lastResult, proxy.lastError, proxy.lastRuleSource)
        let code = UInt16(answer.uint8(at: 3) & 0xF)
        // A refusal without a code in the header has one above it: the version of EDNS is not known.
        entry.code = code == 0 && entry.result == .refused ? .badVersion : ResponseCode(rawValue: code)
        queryLog.note(query, entry)
        news.tell()
    }

    /// Notes how a query was answered that had to wait.
    func note(_ report: AnswerReport, from client: IPAddress?, isTunnelled: Bool, at now: Instant) {
        var entry = QueryLogEntry()
        (entry.answeredAt, entry.taken) = (now, now.since(report.arrivedAt))
        (entry.client, entry.transport, entry.isTunnelled) = (client, report.transport, isTunnelled)
        (entry.result, entry.code, entry.error) = (report.result, report.responseCode, report.error)
        (entry.upstream, entry.ruleSource, entry.isMerged) = (report.upstream, report.ruleSource, report.isMerged)
        let query = report.query
        queryLog.note(query.span.octets, entry)
        news.tell()
    }

    /// Begins or ends the log.
    func setQueryLog(_ detail: DNSConfiguration.QueryLog) {
        queryLog.set(detail)
        proxy.reportsAnswers = queryLog.isOn
    }

    /// A part of the log.
    ///
    /// - Parameter awaitsMore: True to have the next query told, when there is none yet.
    func queries(from number: UInt64?, limit: Int, awaitsMore: Bool) -> QueryLogExcerpt {
        var excerpt = queryLog.excerpt(from: number, limit: limit)
        (excerpt.upstreamNames, excerpt.ruleSourceNames) = (proxy.upstreamNames, proxy.ruleSourceNames)
        if awaitsMore, excerpt.queries.isEmpty { news.await() }
        return excerpt
    }
}
