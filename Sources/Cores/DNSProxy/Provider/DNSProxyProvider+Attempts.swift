internal import ByteAccess
internal import DNSMessage
internal import Provider

extension DNSProxyProvider {
    /// Begins a lookup that was taken out, or is new: with the first servers of its route.
    mutating func begin(_ lookup: consuming Lookup, _ slot: Int, at now: Instant) {
        lookup.phaseDeadline = lookup.deadline
        if translates(lookup) {
            // Servers that say nothing about IPv6 addresses must leave time to ask for the others.
            lookup.phaseDeadline = now + Interval(nanoseconds: lookup.deadline.since(now).nanoseconds / 2)
        }
        let route = lookup.route.map { configuration.routes[$0] }
        lookup.course = course(
            among: route?.upstreams ?? configuration.defaultUpstreams, route?.strategy ?? configuration.strategy,
            at: now)
        lookup.hasCheckedCase = false
        attemptWave(&lookup, slot, at: now)
        scheduleStep(&lookup, at: now)
        lookups.put(consume lookup, slot)
    }

    /// The route of the name that servers are asked about.
    func route(of lookup: borrowing Lookup) -> Int? {
        if case .reverse(let reverse) = lookup.phase {
            let name = CanonicalName(lowercased: reverse.bytes)
            return routes.longestMatch(of: name)?.value
        }
        let key = lookup.key
        let name = CanonicalName(lowercased: key.span.octets.extracting(5...))
        return routes.longestMatch(of: name)?.value
    }

    /// Puts the question to the servers whose turn it is.
    mutating func attemptWave(_ lookup: inout Lookup, _ slot: Int, at now: Instant) {
        counters.parallel &+= UInt64(max(lookup.course.wave.count - 1, 0))
        for place in lookup.course.wave {
            let upstream = lookup.course.candidates[place].upstream
            attempt(
                &lookup, slot, upstream, by: upstreams[upstream.index].upstream.transport,
                isFresh: lookup.course.isSecondRound, at: now)
        }
    }

    /// Puts the question to a server.
    ///
    /// - Parameter isPassedOver: True when the lookup has gone on to others already.
    mutating func attempt(
        _ lookup: inout Lookup, _ slot: Int, _ upstream: UpstreamID, by transport: ExchangeTransport, isFresh: Bool,
        usesEDNS: Bool = true, isPassedOver: Bool = false, at now: Instant
    ) {
        let isProbe = upstreams[upstream.index].health.beginProbation(at: now)
        let state = upstreams[upstream.index]
        let id = lookups.nextExchange(slot)
        let limit = state.limit(
            atLeast: leastLimit(transport, of: lookup), connects: isFresh && transport != .udp)
        lookup.attempts.append(
            Attempt(
                id: id, upstream: upstream, transport: transport, usesEDNS: usesEDNS,
                mixesCase: configuration.mixesCase && !transport.isEncrypted && !state.losesCase, isProbe: isProbe,
                begin: now, late: limit.map { now + $0 }, isPassedOver: isPassedOver))
        upstreams[upstream.index].exchanges += 1
        var exchange = Exchange(
            id: id, upstream: upstream, transport: transport, needsFreshConnection: isFresh,
            deadline: lookup.phaseDeadline)
        if let limit { exchange.patience = limit }
        emit(.exchange(exchange))
    }

    /// Puts the question once more, in place of an attempt that has ended: in another way, to the same server.
    mutating func replace(
        _ attempt: Attempt, of lookup: inout Lookup, _ slot: Int, by transport: ExchangeTransport, usesEDNS: Bool,
        at now: Instant
    ) {
        end(attempt, &lookup)
        self.attempt(
            &lookup, slot, attempt.upstream, by: transport, isFresh: false, usesEDNS: usesEDNS,
            isPassedOver: attempt.isPassedOver, at: now)
        if !attempt.isPassedOver { scheduleStep(&lookup, at: now) }
    }

    /// Gives up all exchanges of a lookup.
    ///
    /// - Parameter now: When the servers have been slower than another one, or than they may be; nil when they are given up for
    ///   reasons that have nothing to do with them.
    mutating func cancelAttempts(of lookup: inout Lookup, slowAt now: Instant? = nil) {
        for attempt in lookup.attempts {
            let index = attempt.upstream.index
            if attempt.isOverdue { upstreams[index].countFailure(.timedOut) }
            if let now {
                upstreams[index].noteLostRace(since: attempt.begin, at: now)
                if attempt.isProbe { upstreams[index].health.postponeProbation(at: now) }
            } else if attempt.isProbe {
                upstreams[index].health.endProbation()
            }
            emit(.cancel(attempt.id))
        }
        lookup.attempts.removeAll()
    }
}
