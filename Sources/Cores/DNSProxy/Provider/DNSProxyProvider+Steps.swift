internal import Provider

/// When a lookup goes on to the next servers.
///
/// The time that is left is shared among the steps that are left. In the first round a step ends earlier when the servers that it asks
/// usually take much less: a connection that has died, or a lost datagram, then costs a fraction of a second. Whoever was asked may
/// answer until the lookup ends.
extension DNSProxyProvider {
    /// When a server is late at the earliest: where the question is put to another one then, or in another datagram, and where a new
    /// connection is made. TCP makes good for a lost segment by itself within two or three tenths of a second (RFC 6298, RFC 8985).
    private static let leastLimit: (usual: Interval, connecting: Interval) = (.milliseconds(200), .milliseconds(750))
    /// How long a server is waited for at least before the next step, and at most when it was down.
    private static let patience: (least: Interval, onProbation: Interval) = (.milliseconds(200), .milliseconds(300))

    /// Sets when the next step is due.
    ///
    /// - Parameter hastens: True when that may be before the step's share of the time is over.
    mutating func scheduleStep(_ lookup: inout Lookup, hastens: Bool = true, at now: Instant) {
        lookup.isStepHastened = false
        let steps = lookup.course.stepsLeft
        guard steps > 1 else {
            lookup.stepDeadline = nil
            return
        }
        var share = max(lookup.phaseDeadline.since(now).nanoseconds / UInt64(steps), Self.patience.least.nanoseconds)
        let current = lookup.attempts.lazy.filter { !$0.isPassedOver }
        if !current.isEmpty, current.allSatisfy(\.isProbe) {
            share = min(share, Self.patience.onProbation.nanoseconds)
        }
        let due = current.compactMap(\.late).min()
        if hastens, lookup.course.mayHasten, let due, due.since(now).nanoseconds < share {
            share = due.since(now).nanoseconds
            lookup.isStepHastened = true
            lookup.course.isHastened = true
        }
        lookup.stepDeadline = now + Interval(nanoseconds: share)
    }

    /// When a server that is about to be asked is late at the earliest.
    func leastLimit(_ transport: ExchangeTransport, of lookup: borrowing Lookup) -> Interval {
        transport != .udp && lookup.course.isLastWave ? Self.leastLimit.connecting : Self.leastLimit.usual
    }

    /// Does everything that is due.
    mutating func expire(at now: Instant) {
        while let slot = lookups.due(at: now), var lookup = lookups.take(slot) {
            if let deadline = lookup.staleDeadline, deadline <= now {
                giveStale(&lookup, at: now)
                lookups.put(lookup, slot)
                continue
            }
            guard now < lookup.phaseDeadline, lookup.isWanted else {
                passOver(&lookup, at: now)
                fail(lookup, slot, (lookup.failure ?? .timedOut).extendedErrorCode, at: now)
                continue
            }
            if takeStep(&lookup, slot, at: now) {
                lookups.put(lookup, slot)
            } else {
                fail(lookup, slot, (lookup.failure ?? .timedOut).extendedErrorCode, at: now)
            }
        }
    }

    /// Servers that are asked now have had their time: asks them once more, or the next ones.
    ///
    /// - Returns: False when nothing is left to be tried or waited for.
    private mutating func takeStep(_ lookup: inout Lookup, _ slot: Int, at now: Instant) -> Bool {
        let isHastened = lookup.isStepHastened
        if isHastened, !isWorthHaste(lookup, at: now) {
            if !lookup.attempts.contains(where: \.isPassedOver) { lookup.course.isHastened = false }
            scheduleStep(&lookup, hastens: false, at: now)
            return true
        }
        if isHastened { counters.hastened &+= 1 }
        passOver(&lookup, onlyLate: isHastened, at: now)
        // Slower servers still have some of their time.
        var goesOn = lookup.attempts.contains { !$0.isPassedOver }
        if !goesOn, lookup.course.asksOnceMore {
            for place in lookup.course.wave where isWorthAskingAgain(place, of: lookup, at: now) {
                askAgain(&lookup, slot, place, after: nil, at: now)
                goesOn = true
            }
        }
        if !goesOn, lookup.course.moveOn(startsOver: true) {
            attemptWave(&lookup, slot, at: now)
            goesOn = true
        }
        if goesOn { scheduleStep(&lookup, at: now) } else { lookup.stepDeadline = nil }
        return goesOn || !lookup.attempts.isEmpty
    }

    /// True when more is to be asked because servers are late. A server that has answered something else meanwhile is there, and its
    /// connection is, as far as is known: it is the question that takes its time, and only another server may be faster.
    private mutating func isWorthHaste(_ lookup: borrowing Lookup, at now: Instant) -> Bool {
        let late = lookup.attempts.filter { $0.isLate(at: now) }
        if lookup.course.isLastWave,
            late.allSatisfy({ upstreams[$0.upstream.index].hasAnswered(since: $0.begin) })
        {
            return false
        }
        let isAffordable = late.allSatisfy { upstreams[$0.upstream.index].haste.spend() }
        if !isAffordable { counters.unhastened &+= 1 }
        return isAffordable
    }

    /// True when a server that took too long is asked once more.
    private func isWorthAskingAgain(_ place: Int, of lookup: borrowing Lookup, at now: Instant) -> Bool {
        let candidate = lookup.course.candidates[place]
        let isDown = upstreams[candidate.upstream.index].health.isDown(at: now)
        return !candidate.hasRetried && (lookup.course.isLastWave || !isDown)
            && lookup.attempts.contains { $0.upstream == candidate.upstream }
    }

    /// Notes that servers that are asked now have had their time. They may still answer.
    ///
    /// - Parameter onlyLate: True for those only that usually take less.
    private mutating func passOver(_ lookup: inout Lookup, onlyLate: Bool = false, at now: Instant) {
        for index in lookup.attempts.indices {
            let attempt = lookup.attempts[index]
            guard onlyLate ? attempt.isLate(at: now) : !attempt.isPassedOver else { continue }
            lookup.attempts[index].isPassedOver = true
            lookup.attempts[index].isOverdue = true
            upstreams[attempt.upstream.index].noteSilence(since: attempt.begin, at: now)
            lookup.failure = .timedOut
        }
    }

    /// Puts the question once more to a server of the present wave, by a fresh connection where there are connections.
    ///
    /// - Parameter latest: The attempt that has just come to nothing; nil when it goes on.
    private mutating func askAgain(
        _ lookup: inout Lookup, _ slot: Int, _ place: Int, after latest: Attempt?, at now: Instant
    ) {
        lookup.course.noteRetry(at: place)
        let upstream = lookup.course.candidates[place].upstream
        let latest = latest ?? lookup.attempts.last { $0.upstream == upstream }
        attempt(
            &lookup, slot, upstream, by: latest?.transport ?? upstreams[upstream.index].upstream.transport,
            isFresh: true, usesEDNS: latest?.usesEDNS ?? true, at: now)
    }

    /// Goes on with a lookup that was taken out when one of its attempts has come to nothing: with a fresh connection to the same
    /// server, with others that are asked already, or else with the next. Ends it when there is nothing left.
    mutating func goOn(
        after attempt: Attempt, _ lookup: consuming Lookup, _ slot: Int, isWorthAFreshConnection: Bool, at now: Instant
    ) {
        var goesOn = now < lookup.phaseDeadline && lookup.isWanted
        if goesOn {
            goesOn = takeStep(
                after: attempt, &lookup, slot, isWorthAFreshConnection: isWorthAFreshConnection, at: now)
        }
        if goesOn {
            lookups.put(lookup, slot)
        } else {
            fail(lookup, slot, (lookup.failure ?? .invalidAnswer).extendedErrorCode, at: now)
        }
    }

    private mutating func takeStep(
        after attempt: Attempt, _ lookup: inout Lookup, _ slot: Int, isWorthAFreshConnection: Bool, at now: Instant
    ) -> Bool {
        // Another step was taken when it was late.
        if attempt.isPassedOver { return !lookup.attempts.isEmpty }
        let isDown = upstreams[attempt.upstream.index].health.isDown(at: now)
        if isWorthAFreshConnection, lookup.course.isLastWave || !isDown,
            let place = lookup.course.retryPlace(of: attempt.upstream)
        {
            askAgain(&lookup, slot, place, after: attempt, at: now)
        } else if lookup.attempts.contains(where: { !$0.isPassedOver }) {
            return true
        } else if lookup.course.moveOn(startsOver: false) {
            attemptWave(&lookup, slot, at: now)
        } else if lookup.attempts.isEmpty {
            return false
        }
        scheduleStep(&lookup, at: now)
        return true
    }
}
