internal import Provider

// Programs that ask for the log of queries.
extension RunDaemon {
    /// Answers a program that asks for queries, or lets it wait for the next ones.
    mutating func answer(_ id: AppMessageID, _ request: QueryLogRequest) {
        guard let dns else { return refuse(id, "there is no DNS proxy") }
        let mayWait = request.first != nil && request.timeLimit.nanoseconds > 0
        let excerpt = dns.queries(from: request.first, limit: QueryLogRequest.limit, awaitsMore: mayWait)
        guard excerpt.detail != .off else { return refuse(id, "the log of queries is off (dns.queryLog)") }
        guard mayWait, excerpt.queries.isEmpty, excerpt.lostCount == 0 else { return reply(id, excerpt) }
        let now = HostClock.now()
        if !watchers.hold(id, for: excerpt.next, timeLimit: request.timeLimit, at: now) {
            refuse(id, "too many programs wait for a query")
        }
    }

    /// Answers the programs whose time has come.
    mutating func answerWatchers(at now: Instant) {
        for (id, number) in watchers.due(at: now) { answer(id, QueryLogRequest(from: number)) }
    }

    /// Answers all programs that wait: what they wait for may never come.
    mutating func answerAllWatchers() {
        for (id, number) in watchers.all() { answer(id, QueryLogRequest(from: number)) }
    }

    private mutating func reply(_ id: AppMessageID, _ excerpt: QueryLogExcerpt) {
        let json = excerpt.json(now: HostClock.now(), wallClock: HostClock.wallClock())
        note(messages.reply(id, json.text + "\n", loop))
    }

    private mutating func refuse(_ id: AppMessageID, _ reason: String) {
        note(messages.reply(id, AppMessageText.failure(reason), loop))
    }
}
