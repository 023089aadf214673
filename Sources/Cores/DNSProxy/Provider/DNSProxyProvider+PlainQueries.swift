internal import ByteAccess
internal import DNSMessage
internal import Provider

/// The short way of queries that are asked over and over.
///
/// The way of all queries leads past local names, rules, routes and the cache. When it ended in an answer from the cache, nothing on it had
/// anything to say about the question, and nothing will until the configuration is another one: `rulesGeneration` counts that. So the
/// cache's entry notes the generation, and a plain query goes from there at once.
///
/// What is added to the way of all queries has to hold here too: what changes without the generation being counted, or depends on more than
/// the question, DO and CD, must keep entries from being noted.
extension DNSProxyProvider {
    /// Answers a query from the cache when that was done before; nil for it to go the way of all.
    @inline(__always)
    mutating func answerPlainly(
        _ bytes: RawSpan, by transport: ClientTransport, at now: Instant, into output: inout MutableRawSpan
    ) -> Int? {
        guard isRunning, let query = PlainQuery(bytes), query.type != .any else { return nil }
        let limit = transport == .udp ? query.answerLimit : DNSMessageView.maximumByteCount
        guard
            let count = cache.answer(
                query, bytes, generation: rulesGeneration, prefetches: configuration.prefetches, limit: limit, at: now,
                into: &output)
        else { return nil }
        counters.cacheHits &+= 1
        return count
    }

    /// Notes what was found in the cache and given out, when it can be given out again without anything else being looked at.
    mutating func notePlain(_ hit: AnswerCache.Hit, at now: Instant) {
        let entry = cache.entry(of: hit)
        // How often it is given out is counted on the way of all, as far as it matters.
        guard entry.kind == .answer, entry.verdict == .passes, entry.rulesGeneration == rulesGeneration,
            now < entry.expiresAt, !configuration.prefetches || entry.isHot
        else { return }
        cache.notePlain(hit, generation: rulesGeneration)
    }
}
