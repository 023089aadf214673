internal import ByteAccess
internal import DNSMessage
internal import Provider

extension DNSProxyProvider {
    /// Says what becomes of a query.
    mutating func decide(
        on bytes: RawSpan, from client: ClientToken, by transport: ClientTransport, at now: Instant,
        into output: inout MutableRawSpan
    ) -> Decision {
        precondition(output.byteCount >= Self.answerCapacity, "an output that not every answer fits into")
        counters.queries &+= 1
        if let count = answerPlainly(bytes, by: transport, at: now, into: &output) { return .answer(count) }
        return handleAny(query: bytes, from: client, by: transport, at: now, into: &output)
    }

    /// The way of all queries. It is apart from the short one, which does not pay for its room on the stack.
    @inline(never)
    private mutating func handleAny(
        query bytes: RawSpan, from client: ClientToken, by transport: ClientTransport, at now: Instant,
        into output: inout MutableRawSpan
    ) -> Decision {
        do throws(DNSMessageError) {
            let query = try QueryView(checking: bytes)
            guard isRunning else {
                counters.refused &+= 1
                return .answer(composer.failure(.serverFailure, .notReady, to: query, by: transport, into: &output))
            }
            return handle(query, from: client, by: transport, at: now, into: &output)
        } catch {
            return refuse(bytes, error, into: &output)
        }
    }

    /// A client went away: its query needs no answer any more. What is under way for it goes on, for the cache.
    public mutating func clientLeft(_ client: ClientToken) {
        if lookups.leave(client) { counters.abandoned &+= 1 }
    }

    /// Answers what is not in order, when it can be answered.
    private mutating func refuse(
        _ bytes: RawSpan, _ error: DNSMessageError, into output: inout MutableRawSpan
    ) -> Decision {
        guard let code = error.responseCode, let echo = try? QueryEcho(of: bytes) else {
            if error == .notAQuery { counters.droppedAnswers &+= 1 } else { counters.droppedWithoutHeader &+= 1 }
            return .drop(error == .notAQuery ? .notAQuery : .noHeader)
        }
        counters.refused &+= 1
        guard let count = try? echo.writeFailure(code, into: &output) else {
            preconditionFailure("a question and an OPT record that do not fit into a message")
        }
        return .answer(count)
    }

    /// Answers a query that is in order, or has servers asked.
    ///
    /// - Parameter aliases: What led to the question from the one that the client asked; nil for nothing.
    mutating func handle(
        _ query: borrowing QueryView, from client: ClientToken, by transport: ClientTransport,
        aliases: [UInt8]? = nil, at now: Instant, into output: inout MutableRawSpan
    ) -> Decision {
        let question = query.question
        guard question.recordClass == .internet, !question.type.isMeta else {
            counters.refused &+= 1
            let code: ResponseCode =
                question.recordClass != .internet || question.type == .axfr || question.type == .ixfr
                ? .refused : .notImplemented
            return .answer(composer.failure(code, .notSupported, to: query, by: transport, into: &output))
        }
        let key = CacheKey(query)
        let name = CanonicalName(lowercased: key.nameBytes)
        if aliases == nil,
            let decision = answerFromRecords(query, name, from: client, by: transport, at: now, into: &output)
        {
            return decision
        }
        let route = routes.longestMatch(of: name)?.value
        // Who routes names of addresses behind the prefix of DNS64 knows better than to translate them.
        let reverse = route == nil ? reverseName(question.type, name) : nil
        if reverse == nil,
            let count = answerLocally(query, name, isRouted: route != nil, by: transport, into: &output)
        {
            counters.local &+= 1
            return .answer(count)
        }
        if let count = answerIPv4Only(query, name, reverse, by: transport, into: &output) {
            counters.local &+= 1
            return .answer(count)
        }
        if let count = answerWithoutIPv6(query, by: transport, into: &output) {
            counters.local &+= 1
            return .answer(count)
        }
        let ruling = rules.verdict(on: name)
        if case .block(let source) = ruling {
            noteBlock(by: source)
            return .answer(composer.blocked(source, to: query, by: transport, into: &output))
        }
        if question.type == .any, transport == .udp {
            counters.local &+= 1
            return .answer(composer.minimalAny(to: query, by: transport, into: &output))
        }
        let policy = policy(for: name, ruling, isRouted: route != nil)
        var hasStale = false
        if let subnet = passedSubnet(of: query), reverse == nil {
            if let count = answerFromCache(query, key, for: subnet, policy, by: transport, at: now, into: &output) {
                return .answer(count)
            }
            return ask(
                query, key, route: route, for: subnet, from: client, by: transport, aliases: aliases,
                staleDeadline: nil, at: now, into: &output)
        }
        if let count = answerFromCache(query, key, policy, by: transport, at: now, hasStale: &hasStale, into: &output) {
            return .answer(count)
        }
        let staleDeadline = hasStale ? now + Self.staleTimes.patience : nil
        guard let reverse else {
            return ask(
                query, key, route: route, from: client, by: transport, aliases: aliases, staleDeadline: staleDeadline,
                at: now, into: &output)
        }
        guard !isUnknownOutside(reverse) else {
            counters.local &+= 1
            return .answer(
                composer.negative(
                    .nameError, timeToLive: AnswerComposer.specialTimeToLive, to: query, by: transport, into: &output))
        }
        return ask(
            query, key, .reverse(reverse), route: nil, from: client, by: transport, aliases: aliases,
            staleDeadline: staleDeadline, at: now, into: &output)
    }

    /// Answers what needs no server.
    private func answerLocally(
        _ query: borrowing QueryView, _ name: borrowing CanonicalName, isRouted: Bool, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) -> Int? {
        let type = query.question.type
        guard let (special, labelCount) = specialNames.longestMatch(of: name) else {
            guard name.labelCount == 1, type == .a || type == .aaaa || type == .https, !isRouted,
                !configuration.forwardsSingleLabels
            else { return nil }
            return composer.negative(
                .nameError, timeToLive: AnswerComposer.specialTimeToLive, to: query, by: transport, into: &output)
        }
        switch special {
        case .loopback:
            return composer.loopback(to: query, by: transport, into: &output)
        case .absentUnlessRouted where isRouted:
            return nil
        case .absent, .absentUnlessRouted:
            // What does not exist is not the apex of its zone.
            return composer.negative(
                .nameError, timeToLive: AnswerComposer.specialTimeToLive,
                zoneLabelCount: min(labelCount, name.labelCount - 1), to: query, by: transport, into: &output)
        case .empty:
            return composer.negative(
                .noError, timeToLive: AnswerComposer.specialTimeToLive, zoneLabelCount: labelCount, to: query,
                by: transport, into: &output)
        case .privateRelay:
            guard configuration.blocksPrivateRelay else { return nil }
            return composer.negative(
                .nameError, ExtendedError(.blocked, text: "dns.privateRelay"),
                timeToLive: configuration.blockedTimeToLive, to: query, by: transport, into: &output)
        case .canary:
            guard type == .a || type == .aaaa, !rules.isEmpty else { return nil }
            return composer.negative(
                .nameError, ExtendedError(.filtered), timeToLive: configuration.blockedTimeToLive, to: query,
                by: transport, into: &output)
        }
    }

    /// Has a server asked, or waits with those who asked the same before.
    private mutating func ask(
        _ query: borrowing QueryView, _ key: borrowing CacheKey, _ phase: Lookup.Phase = .question, route: Int?,
        for subnet: ClientSubnet? = nil, from client: ClientToken, by transport: ClientTransport, aliases: [UInt8]?,
        staleDeadline: Instant?, at now: Instant, into output: inout MutableRawSpan
    ) -> Decision {
        precondition(!lookups.isWaiting(client), "a query with the number of one that waits")
        counters.cacheMisses &+= 1
        let keyBytes = [UInt8](copying: key.bytes)
        let slot = lookups.slot(of: Lookup.tableKey(keyBytes, subnet))
        guard lookups.waitingCount < configuration.maximumWaiting,
            slot != nil || lookups.count < configuration.maximumLookups
        else {
            counters.overloaded &+= 1
            return .answer(composer.failure(.serverFailure, .notReady, to: query, by: transport, into: &output))
        }
        var waiting = WaitingQuery(
            query, from: client, by: transport, at: now, keepsSubnet: subnet != nil, isMerged: slot != nil)
        waiting.aliases = aliases
        if let slot {
            counters.merged &+= 1
            lookups.join(waiting, slot, staleDeadline: staleDeadline)
            return .pending
        }
        var lookup = Lookup(key: keyBytes, deadline: now + configuration.timeout, first: waiting, route: route)
        lookup.waiting.append(waiting)
        (lookup.phase, lookup.staleDeadline, lookup.subnet) = (phase, staleDeadline, subnet)
        if case .reverse = phase { lookup.route = self.route(of: lookup) }
        let newSlot = lookups.admit(lookup)
        begin(lookup, newSlot, at: now)
        return .pending
    }
}
