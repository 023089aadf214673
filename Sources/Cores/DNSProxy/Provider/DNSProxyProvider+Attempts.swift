internal import ByteAccess
internal import DNSMessage
internal import Provider

extension DNSProxyProvider {
    /// How long a server is waited for at least before the next step, and at most when it was down.
    private static let patience: (least: Interval, onProbation: Interval) = (.milliseconds(200), .milliseconds(300))

    /// Begins a lookup that was taken out: with the first server of its route.
    mutating func begin(_ lookup: Lookup, _ slot: Int, at now: Instant) {
        var lookup = lookup
        lookup.route = route(of: lookup)
        lookup.phaseDeadline = lookup.deadline
        if translates(lookup) {
            // Servers that say nothing about IPv6 addresses must leave time to ask for the others.
            lookup.phaseDeadline = now + Interval(nanoseconds: lookup.deadline.since(now).nanoseconds / 2)
        }
        let group = lookup.route.map { configuration.routes[$0].upstreams } ?? configuration.defaultUpstreams
        lookup.upstreams =
            group.filter { !upstreams[$0.index].health.isDown(at: now) }
            + group.filter { upstreams[$0.index].health.isDown(at: now) }
        (lookup.position, lookup.hasRetried, lookup.hasCheckedCase) = (0, false, false)
        let upstream = lookup.upstreams[0]
        attempt(&lookup, slot, upstream, by: upstreams[upstream.index].upstream.transport, isFresh: false, at: now)
        lookups.put(lookup, slot)
    }

    /// The route of the name that servers are asked about.
    private func route(of lookup: borrowing Lookup) -> Int? {
        if case .reverse(let reverse) = lookup.phase {
            let name = CanonicalName(lowercased: reverse.bytes)
            return routes.longestMatch(of: name)?.value
        }
        let key = lookup.key
        let name = CanonicalName(lowercased: key.span.octets.extracting(5...))
        return routes.longestMatch(of: name)?.value
    }

    /// Puts the question to a server.
    mutating func attempt(
        _ lookup: inout Lookup, _ slot: Int, _ upstream: UpstreamID, by transport: ExchangeTransport, isFresh: Bool,
        usesEDNS: Bool = true, at now: Instant
    ) {
        let isProbe = upstreams[upstream.index].health.beginProbation(at: now)
        let id = lookups.nextExchange(slot)
        lookup.attempts.append(
            Attempt(
                id: id, upstream: upstream, transport: transport, usesEDNS: usesEDNS,
                mixesCase: configuration.mixesCase && !transport.isEncrypted && !upstreams[upstream.index].losesCase,
                isProbe: isProbe, begin: now))
        upstreams[upstream.index].exchanges += 1

        // The time that is left is shared among the steps that are left.
        let steps = 2 * (lookup.upstreams.count - lookup.position) - (lookup.hasRetried ? 1 : 0)
        if steps > 1 {
            var share = max(
                lookup.phaseDeadline.since(now).nanoseconds / UInt64(steps), Self.patience.least.nanoseconds)
            if isProbe { share = min(share, Self.patience.onProbation.nanoseconds) }
            lookup.stepDeadline = now + Interval(nanoseconds: share)
        } else {
            lookup.stepDeadline = nil
        }
        emit(
            .exchange(
                Exchange(
                    id: id, upstream: upstream, transport: transport, needsFreshConnection: isFresh,
                    deadline: lookup.phaseDeadline)))
    }

    /// Goes on when the latest attempt came to nothing: with a fresh connection to the same server, or else with the next.
    ///
    /// - Parameter latest: The attempt, whether it is still open or over.
    /// - Returns: False when nothing is left to be tried or waited for.
    mutating func advance(
        _ lookup: inout Lookup, _ slot: Int, isWorthAFreshConnection: Bool, latest: Attempt?, at now: Instant
    ) -> Bool {
        lookup.stepDeadline = nil
        let current = lookup.upstreams[lookup.position]
        let isLast = lookup.position + 1 >= lookup.upstreams.count
        let state = upstreams[current.index]
        if isWorthAFreshConnection, !lookup.hasRetried, isLast || !state.health.isDown(at: now) {
            lookup.hasRetried = true
            // What another server was asked by says nothing about this one: it might be without encryption.
            let latest = latest?.upstream == current ? latest : nil
            attempt(
                &lookup, slot, current, by: latest?.transport ?? state.upstream.transport, isFresh: true,
                usesEDNS: latest?.usesEDNS ?? true, at: now)
            return true
        }
        guard !isLast else { return !lookup.attempts.isEmpty }
        lookup.position += 1
        lookup.hasRetried = false
        let upstream = lookup.upstreams[lookup.position]
        attempt(&lookup, slot, upstream, by: upstreams[upstream.index].upstream.transport, isFresh: false, at: now)
        return true
    }

    /// Does everything that is due.
    mutating func expire(at now: Instant) {
        while let slot = lookups.due(at: now), var lookup = lookups.take(slot) {
            if let deadline = lookup.staleDeadline, deadline <= now {
                giveStale(&lookup, at: now)
                lookups.put(lookup, slot)
                continue
            }
            if let latest = lookup.attempts.last {
                upstreams[latest.upstream.index].note(.timedOut, at: now)
                lookup.failure = .timedOut
            }
            guard now < lookup.phaseDeadline, lookup.isWanted else {
                fail(lookup, slot, (lookup.failure ?? .timedOut).extendedErrorCode, at: now)
                continue
            }
            if advance(&lookup, slot, isWorthAFreshConnection: true, latest: lookup.attempts.last, at: now) {
                lookups.put(lookup, slot)
            } else {
                fail(lookup, slot, (lookup.failure ?? .timedOut).extendedErrorCode, at: now)
            }
        }
    }

    /// Gives up all exchanges of a lookup.
    mutating func cancelAttempts(of lookup: inout Lookup) {
        for attempt in lookup.attempts {
            if attempt.isProbe { upstreams[attempt.upstream.index].health.endProbation() }
            emit(.cancel(attempt.id))
        }
        lookup.attempts.removeAll()
    }
}
