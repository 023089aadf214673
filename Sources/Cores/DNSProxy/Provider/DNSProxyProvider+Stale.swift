internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Answers that are too old, for when no server answers (RFC 8767). They are held to the rules as all others are, and none is given to
/// who checks signatures itself, or when a server found that signatures do not fit.
extension DNSProxyProvider {
    /// How long clients wait before they get an answer that is too old, and how long it is given without asking again after servers were
    /// asked in vain (RFC 8767 §5).
    static let staleTimes: (patience: Interval, recheck: Interval) = (.milliseconds(1800), .seconds(30))

    /// For how long after it expired an answer may be given.
    func staleTolerance(checkingDisabled: Bool) -> Interval {
        checkingDisabled ? .seconds(0) : configuration.staleLimit
    }

    /// Gives all who wait an answer that is too old, when there still is one; the lookup goes on for the cache.
    mutating func giveStale(_ lookup: inout Lookup, at now: Instant) {
        lookup.staleDeadline = nil
        guard !lookup.waiting.isEmpty else { return }
        var output = takeBuffer(&buffers.output)
        if postponeRecheck(lookup, at: now, &output) {
            lookup.isRefreshing = true
            let isRouted = lookup.route != nil
            for waiting in lookups.release(&lookup) {
                answer(waiting, &output) { (provider, query, output) in
                    if let count = provider.staleAnswer(
                        query, isRouted: isRouted, by: waiting.transport, at: now, into: &output)
                    {
                        return count
                    }
                    provider.counters.failed &+= 1
                    return provider.composer.failure(
                        .serverFailure, .noReachableAuthority, to: query, by: waiting.transport, into: &output)
                }
            }
        }
        buffers.output = output
    }

    /// Notes that servers were asked in vain.
    ///
    /// - Parameter pause: For how long they are not asked again.
    /// - Returns: False when there is no answer to be given instead.
    mutating func postponeRecheck(
        _ lookup: borrowing Lookup, by pause: Interval = Self.staleTimes.recheck, at now: Instant,
        _ scratch: inout [UInt8]
    ) -> Bool {
        var span = scratch.mutableSpan
        var octets = span.mutableOctets
        let query = lookup.first.query
        let question = query.question
        let tolerance = staleTolerance(checkingDisabled: lookup.checkingDisabled)
        guard let hit = cache.find(question, flags: lookup.keyFlags, at: now, tolerance: tolerance, into: &octets),
            hit.entry.kind == .answer
        else { return false }
        cache.postpone(hit, by: pause, at: now)
        return true
    }

    /// Answers a query from what is kept, however old; nil when nothing is.
    mutating func staleAnswer(
        _ query: borrowing QueryView, isRouted: Bool, by transport: ClientTransport, at now: Instant,
        into output: inout MutableRawSpan
    ) -> Int? {
        let key = CacheKey(query)
        let name = CanonicalName(lowercased: key.nameBytes)
        let ruling = rules.verdict(on: name)
        if case .block(let source) = ruling {
            noteBlock(by: source)
            return composer.blocked(source, to: query, by: transport, into: &output)
        }
        let question = query.question
        let tolerance = staleTolerance(checkingDisabled: query.header.flags.contains(.checkingDisabled))
        guard let hit = cache.find(question, flags: key.flags, at: now, tolerance: tolerance, into: &output),
            hit.entry.kind == .answer
        else { return nil }
        let policy = policy(for: name, ruling, isRouted: isRouted)
        return give(hit, to: query, policy, by: transport, at: now, into: &output)
    }
}
