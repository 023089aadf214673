internal import ByteAccess
internal import DNSMessage
internal import Provider

extension DNSProxyProvider {
    /// Answers from what is kept.
    ///
    /// - Parameter hasStale: Set when there is an answer that is too old, for when no server answers.
    mutating func answerFromCache(
        _ query: borrowing QueryView, _ key: borrowing CacheKey, _ policy: AnswerPolicy, by transport: ClientTransport,
        at now: Instant, hasStale: inout Bool, into output: inout MutableRawSpan
    ) -> Int? {
        let question = query.question
        let tolerance = staleTolerance(checkingDisabled: query.header.flags.contains(.checkingDisabled))
        guard let hit = cache.find(question, flags: key.flags, at: now, tolerance: tolerance, into: &output)
        else { return nil }
        if now >= hit.entry.expiresAt {
            guard hit.entry.kind == .answer else { return nil }
            guard hit.entry.awaitsRecheck(at: now) else {
                hasStale = true
                return nil
            }
        }
        if hit.entry.kind == .failure {
            counters.failed &+= 1
            let code = MessageEditing.flags(of: output).responseCode
            return composer.failure(code, .cachedError, to: query, by: transport, into: &output)
        }
        if configuration.prefetches, hit.entry.isDueForPrefetch(at: now) {
            prefetch(hit, query, key, output.bytes.extracting(..<hit.byteCount), at: now)
        }
        let isRewritten = RewritingMark.error(in: MessageEditing.flags(of: output)) != nil
        let count = give(hit, to: query, policy, by: transport, at: now, into: &output)
        // Of what was taken out of an answer, clients are told each time.
        if count != nil, !isRewritten { notePlain(hit, at: now) }
        return count
    }

    /// Gives a client what was found in the cache and is at the start of the output.
    mutating func give(
        _ hit: AnswerCache.Hit, to query: borrowing QueryView, _ policy: AnswerPolicy, by transport: ClientTransport,
        scope: UInt8 = 0, at now: Instant, into output: inout MutableRawSpan
    ) -> Int? {
        var verdict = hit.entry.verdict
        if hit.entry.rulesGeneration != rulesGeneration {
            // Two readers agreed on these bytes when they came: one is enough to read them again.
            guard let answer = try? DNSMessageView(checking: output.bytes.extracting(..<hit.byteCount)) else {
                return nil
            }
            verdict = policy.verdict(on: ViewAnswerReader().facts(of: answer), rules)
            cache.note(verdict, of: hit, generation: rulesGeneration)
        }
        let isStale = now >= hit.entry.expiresAt
        if isStale { counters.stale &+= 1 } else { counters.cacheHits &+= 1 }
        if let count = holdBack(verdict, query, by: transport, into: &output) { return count }
        let age = UInt32(clamping: now.since(hit.entry.storedAt).nanoseconds / 1_000_000_000)
        return composer.relay(
            count: hit.byteCount, age: isStale ? .stale : .seconds(age), scope: scope, to: query, by: transport,
            into: &output)
    }

    /// What a client gets instead of an answer that policy holds back; nil when it does not.
    mutating func holdBack(
        _ verdict: AnswerVerdict, _ query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) -> Int? {
        switch verdict {
        case .passes:
            return nil
        case .blocked(let source):
            noteBlock(by: source)
            return composer.blocked(source, to: query, by: transport, into: &output)
        case .rebinds:
            counters.rebinding &+= 1
            return composer.negative(
                .noError, ExtendedError(.blocked, text: "dns.rebinding"), timeToLive: configuration.blockedTimeToLive,
                to: query, by: transport, into: &output)
        }
    }
}
