internal import ByteAccess
internal import DNSMessage
internal import Provider

extension DNSProxyProvider {
    /// Ends a lookup that was taken out: nobody could answer, and all who wait are told, or get an answer that is too old. With DNS64 it
    /// may go on instead, with another question.
    mutating func fail(_ lookup: Lookup, _ slot: Int, _ reason: ExtendedErrorCode, at now: Instant) {
        if goesOnWithAddresses(lookup, at: now) { return askForAddresses(lookup, slot, AbsentAddresses(), at: now) }
        var lookup = lookup
        cancelAttempts(of: &lookup, slowAt: now)
        lookups.end(lookup, slot)
        if lookup.discoversPrefix { discovery.noteFailure(at: now) }
        if lookup.isPrefetch {
            counters.failedPrefetches &+= 1
            // What is kept is still good.
            if lookup.waiting.isEmpty { return }
        }
        let code = lookup.refusal?.code ?? .serverFailure
        let reason = lookup.refusal?.error ?? (lookup.refusal == nil ? reason : .noReachableAuthority)
        let last = lookup.course.latest
        origin = AnswerOrigin(upstream: last, error: reason)
        defer { origin = AnswerOrigin() }
        var output = takeBuffer(&buffers.output)
        // What was given up for reasons of our own says nothing about the question.
        let pause = reason == .notReady ? .seconds(1) : Self.staleTimes.recheck
        let hasStale = isRunning && !lookup.isBogus && postponeRecheck(lookup, by: pause, at: now, &output)
        if !hasStale, reason != .notReady, !lookup.waiting.isEmpty { keepFailure(lookup, code, at: now, &output) }
        let isRouted = lookup.route != nil
        for waiting in lookup.waiting {
            answer(waiting, &output) { (provider, query, output) in
                if hasStale,
                    let count = provider.staleAnswer(
                        query, isRouted: isRouted, by: waiting.transport, at: now, into: &output)
                {
                    return count
                }
                provider.counters.failed &+= 1
                return provider.composer.failure(code, reason, to: query, by: waiting.transport, into: &output)
            }
        }
        buffers.output = output
    }

    /// Keeps for a short time that nobody could answer: a second at first, twice as long each time, 32 at most (RFC 9520 §3.2).
    private mutating func keepFailure(
        _ lookup: Lookup, _ code: ResponseCode, at now: Instant, _ scratch: inout [UInt8]
    ) {
        var message = Array(lookup.first.bytes[..<lookup.first.questionEnd])
        var flags: DNSFlags = [.response, .recursionDesired]
        flags.responseCode = code
        message[2] = UInt8(truncatingIfNeeded: flags.rawValue >> 8)
        message[3] = UInt8(truncatingIfNeeded: flags.rawValue)
        message[11] = 0
        let failures = recentFailures(lookup, at: now, &scratch)
        keep(
            message.span.octets, lookup, .failure, .passes, failureCount: failures + 1,
            for: .seconds(1 << UInt64(min(failures, 5))), at: now, &scratch)
    }

    /// How often in a row the question has failed, not long ago.
    private mutating func recentFailures(_ lookup: Lookup, at now: Instant, _ scratch: inout [UInt8]) -> UInt8 {
        var span = scratch.mutableSpan
        var octets = span.mutableOctets
        let query = lookup.first.query
        let question = query.question
        guard let hit = cache.find(question, flags: lookup.keyFlags, at: now, tolerance: .endless, into: &octets),
            hit.entry.kind == .failure, now.since(hit.entry.expiresAt) < .seconds(60)
        else { return 0 }
        return min(hit.entry.failureCount, 100)
    }
}
