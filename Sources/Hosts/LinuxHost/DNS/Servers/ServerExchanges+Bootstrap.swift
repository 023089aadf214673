internal import DNSMessage
internal import DNSProxy
internal import EncryptedDNS
internal import Provider

extension ServerExchanges {
    /// Asks the resolvers of the configuration where a server is, unless that is being done.
    mutating func startLookup(_ upstream: ServerUpstream, at now: Instant, _ loop: borrowing EventLoop) {
        guard !lookups.contains(where: { $0.upstream === upstream }) else { return }
        let lookup = BootstrapLookup(upstream, at: now)
        lookups.append(lookup)
        askNext(lookup, at: now, loop)
    }

    /// Asks the next resolver that can be asked; ends the look-up when all have been.
    private mutating func askNext(_ lookup: BootstrapLookup, at now: Instant, _ loop: borrowing EventLoop) {
        close(lookup)
        while let name = lookup.upstream.bootstrapName,
            lookup.attemptCount < bootstrap.count * BootstrapLookup.roundCount
        {
            let resolver = bootstrap[lookup.attemptCount % bootstrap.count]
            let round = UInt64(lookup.attemptCount / bootstrap.count)
            lookup.attemptCount += 1
            for type in [RecordType.aaaa, .a] {
                guard let question = BootstrapQuestion(name, type, id: random.nextUInt16(), upstream: lookup.upstream)
                else { continue }
                question.token = bootstrapSockets.add(question)
                lookup.questions.append(question)
                do throws(SystemCallError) {
                    try question.ask(
                        by: try ServerSocket.datagram(to: resolver, ports: ports, random: &random), loop)
                } catch {
                    question.state = .failed
                }
            }
            if !lookup.isComplete {
                lookup.deadline = now + Interval(nanoseconds: BootstrapLookup.patience.nanoseconds << round)
                noteDeadline(lookup.deadline)
                return
            }
            close(lookup)
        }
        finish(lookup, at: now, loop)
    }

    /// The socket of a question has something.
    mutating func handleBootstrap(_ question: BootstrapQuestion, at now: Instant, _ loop: borrowing EventLoop) {
        guard let lookup = lookups.first(where: { $0.upstream === question.upstream }),
            withBuffer({ question.receive(into: &$0) })
        else { return }
        if case .truncated = question.state, askByStream(question, lookup, loop) { return }
        close(question)
        if lookup.isComplete {
            goOn(lookup, at: now, loop)
        } else if !lookup.result.addresses.isEmpty {
            lookup.deadline = min(lookup.deadline, now + BootstrapLookup.familyPatience)
            noteDeadline(lookup.deadline)
        }
    }

    /// Asks a question again by TCP. False when there is no socket for it.
    private mutating func askByStream(
        _ question: BootstrapQuestion, _ lookup: BootstrapLookup, _ loop: borrowing EventLoop
    ) -> Bool {
        close(question)
        question.token = bootstrapSockets.add(question)
        do throws(SystemCallError) {
            let resolver = bootstrap[(lookup.attemptCount - 1) % bootstrap.count]
            try question.ask(byStream: try ServerSocket.stream(to: resolver, ports: ports), loop)
            return true
        } catch {
            question.state = .failed
            return false
        }
    }

    /// Goes on with the look-ups whose resolvers have had their time.
    mutating func expireLookups(at now: Instant, _ loop: borrowing EventLoop) {
        for lookup in lookups where lookup.deadline <= now { goOn(lookup, at: now, loop) }
    }

    private mutating func goOn(_ lookup: BootstrapLookup, at now: Instant, _ loop: borrowing EventLoop) {
        if lookup.result.addresses.isEmpty {
            askNext(lookup, at: now, loop)
        } else {
            finish(lookup, at: now, loop)
        }
    }

    /// Tells who waits for the addresses.
    private mutating func finish(_ lookup: BootstrapLookup, at now: Instant, _ loop: borrowing EventLoop) {
        let upstream = lookup.upstream
        let (addresses, interval) = lookup.result
        end(lookup)
        upstream.resolutionRetry = now + .seconds(5)
        upstream.needsReview = true
        if addresses.isEmpty {
            upstream.failedResolutionCount += 1
            log.info("no resolver knows an address of the upstream \(public: upstream.name)")
            perform(upstream.connections.resolutionFailed(at: now), upstream, at: now, loop)
        } else {
            upstream.addresses = addresses
            upstream.datagramAddress = 0
            upstream.addressesExpire = now + interval
            perform(
                upstream.connections.resolved(addresses, validFor: interval, at: now), upstream, at: now, loop)
        }
        let waiting = upstream.waitingDatagrams
        upstream.waitingDatagrams = []
        for exchange in waiting { beginDatagram(exchange, upstream, at: now, loop) }
    }

    /// Forgets a look-up.
    mutating func end(_ lookup: BootstrapLookup) {
        close(lookup)
        lookups.removeAll { $0 === lookup }
    }

    private mutating func close(_ lookup: BootstrapLookup) {
        for question in lookup.questions { close(question) }
        lookup.questions = []
    }

    private mutating func close(_ question: BootstrapQuestion) {
        if let token = question.token { bootstrapSockets.remove(token) }
        question.token = nil
        question.close()
    }
}
