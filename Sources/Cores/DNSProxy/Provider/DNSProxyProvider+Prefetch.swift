internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Answers that are asked for anew before their time is over, because many want them: clients never wait for those.
extension DNSProxyProvider {
    /// How many questions may be under way that no client waits for.
    private static let prefetchLimit = 32

    /// Asks anew for an answer that was just given to a client from the cache, when it is due; see ``CacheEntry/isDueForPrefetch(at:)``.
    ///
    /// - Parameter answer: The answer as it is kept.
    mutating func prefetch(
        _ hit: AnswerCache.Hit, _ query: borrowing QueryView, _ key: borrowing CacheKey, _ answer: RawSpan,
        at now: Instant
    ) {
        guard !isAsleep, hit.entry.verdict == .passes, lookups.prefetchCount < Self.prefetchLimit,
            lookups.count < configuration.maximumLookups,
            let view = try? DNSMessageView(checking: answer), view.answerKind == .records
        else { return }
        let name = CanonicalName(lowercased: key.nameBytes)
        // What is made of an answer to another question is asked for when it is missing.
        guard reverseName(query.question.type, name) == nil else { return }
        cache.notePrefetch(of: hit)
        let keyBytes = [UInt8](copying: key.bytes)
        guard lookups.slot(of: keyBytes) == nil else { return }
        counters.prefetches &+= 1
        // Nobody waits for it: the number is never used.
        let first = WaitingQuery(query, from: ClientToken(rawValue: .max), by: .udp, at: now)
        var lookup = Lookup(key: keyBytes, deadline: now + configuration.timeout, first: first, route: nil)
        (lookup.isRefreshing, lookup.isPrefetch) = (true, true)
        lookup.route = self.route(of: lookup)
        let slot = lookups.admit(lookup)
        begin(consume lookup, slot, at: now)
    }
}

extension CacheEntry {
    /// What is kept for less than this is not asked for before its time is over.
    private static let leastLifetime = Interval.seconds(10)
    /// How often an answer has to have been given before it is worth asking for again.
    private static let leastUses: UInt8 = 3

    /// True when it was given out often enough to be worth asking for again.
    var isHot: Bool { useCount >= Self.leastUses }

    /// True when many want the answer, and less than a tenth of its time is left; after each time that it was asked for anew in vain,
    /// when less than half is left of what was left then.
    func isDueForPrefetch(at now: Instant) -> Bool {
        guard isHot, kind == .answer else { return false }
        let lifetime = expiresAt.since(storedAt)
        let left = expiresAt.since(now)
        guard lifetime >= Self.leastLifetime, left.nanoseconds > 0 else { return false }
        return left.nanoseconds < (lifetime.nanoseconds / 10) >> UInt64(prefetchCount)
    }

    /// How often the answer was given, as far as it matters.
    var useCount: UInt8 { usage & 0xF }
    /// How often it was asked for anew.
    var prefetchCount: UInt8 { usage >> 4 }

    /// Counts that the answer was given. False when it does not matter any more.
    mutating func countUse() -> Bool {
        guard useCount < Self.leastUses else { return false }
        usage += 1
        return true
    }

    /// Counts that the answer is asked for anew.
    mutating func countPrefetch() {
        if prefetchCount < 0xF { usage += 0x10 }
    }
}
