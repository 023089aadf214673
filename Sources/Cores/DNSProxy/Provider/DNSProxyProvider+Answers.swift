internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Why what came for an exchange goes to no client.
enum Unusable: Error {
    /// It is no answer to the query, or none at all.
    case notTheAnswer
    /// It is the answer, and makes no sense.
    case invalid
    /// It is the answer but for the case of the question's letters.
    case lostCase
    /// It did not fit into a datagram.
    case needsTCP
    /// The server does not understand EDNS.
    case needsNoEDNS
    /// The server could not, or did not want to.
    case refused(ResponseCode, ExtendedErrorCode?)
    /// The server found that signatures do not fit: no other server is asked to overlook that.
    case bogus(ExtendedErrorCode)
}

extension DNSProxyProvider {
    /// Reads what came, and throws unless it is an answer to the query that can be used.
    @_lifetime(copy answer)
    static func check(_ answer: RawSpan, _ attempt: Attempt) throws(Unusable) -> DNSMessageView {
        let view: DNSMessageView
        do throws(DNSMessageError) {
            view = try DNSMessageView(checking: answer)
        } catch {
            throw .notTheAnswer
        }
        try checkQuestion(view, attempt)
        // By a connection there is no excuse.
        if view.header.flags.contains(.truncated) { throw attempt.transport == .udp ? .needsTCP : .invalid }
        try checkCode(view, attempt)
        if view.answerKind == .endlessAliases { throw .invalid }
        return view
    }

    private static func checkQuestion(_ view: borrowing DNSMessageView, _ attempt: Attempt) throws(Unusable) {
        // Servers repeat the question as it came, for the most part.
        if view.repeatsQuestion(of: attempt.sent.span.octets) { return }
        guard !attempt.sent.isEmpty, let sent = try? DNSMessageView(checking: attempt.sent.span.octets),
            let question = sent.question
        else { throw .notTheAnswer }
        do throws(AnswerMismatch) {
            try view.check(
                isAnswerTo: question, id: sent.header.id,
                matchingCase: attempt.mixesCase && attempt.transport == .udp)
        } catch {
            switch error {
            case .otherCase: throw .lostCase
            case .noQuestion where attempt.usesEDNS && view.header.flags.responseCode == .formatError:
                // Servers that cannot read a query have nothing to repeat.
                throw .needsNoEDNS
            case .noQuestion, .notAnAnswer, .otherID, .otherOpcode, .otherQuestion: throw .notTheAnswer
            }
        }
    }

    private static func checkCode(_ view: borrowing DNSMessageView, _ attempt: Attempt) throws(Unusable) {
        let code = view.responseCode
        switch code {
        case .noError, .nameError, .nameTooLong: return
        case .formatError, .badVersion, .notImplemented:
            if attempt.usesEDNS, view.optLayout == nil || code == .badVersion { throw .needsNoEDNS }
            throw .refused(.serverFailure, nil)
        case .serverFailure:
            let reason = view.edns?.extendedError?.code
            // 6 to 12 are what a validator says (RFC 8914 §4.7 to §4.13).
            if let reason, 6...12 ~= reason.rawValue { throw .bogus(reason) }
            throw .refused(.serverFailure, reason)
        default:
            throw .refused(code.rawValue < 16 ? code : .serverFailure, view.edns?.extendedError?.code)
        }
    }

    /// Takes an answer: holds it to the rules, keeps it, and gives it to all who wait.
    mutating func receive(
        _ view: borrowing DNSMessageView, _ attempt: Attempt, _ slot: Int, _ lookup: inout Lookup,
        _ freshness: AnswerFreshness, _ reader: borrowing some AnswerReader, at now: Instant
    ) throws(Unusable) {
        // Otherwise it is about another network than the one that was asked for, or forged (RFC 7871 §7.3).
        if let subnet = lookup.subnet, !subnet.isRepeated(in: view) { throw .notTheAnswer }
        let facts: AnswerFacts
        do {
            facts = try reader.facts(of: view)
        } catch {
            throw .invalid
        }
        lookup.scopeLength = lookup.subnet == nil ? nil : view.edns?.scopePrefixLength
        origin = AnswerOrigin(upstream: attempt.upstream)
        defer { origin = AnswerOrigin() }
        let isTrusted = upstreams[attempt.upstream.index].upstream.isTrustedForAuthenticData
        upstreams[attempt.upstream.index].noteAnswer(since: attempt.begin, at: now)
        if attempt.mixesCase, attempt.transport == .tcp, !Self.keepsCase(view, attempt) {
            upstreams[attempt.upstream.index].losesCase = true
        }
        // A rule may be younger than the question.
        var verdict = verdict(on: facts, of: lookup)

        var kept = takeBuffer(&buffers.kept)
        var output = takeBuffer(&buffers.output)
        let count = AnswerNormalizer(
            dnssecOK: lookup.dnssecOK, isTrusted: isTrusted, freshness: freshness,
            bounds: configuration.timeToLiveBounds
        ).write(view, into: &kept)
        guard var count else {
            (buffers.kept, buffers.output) = (kept, output)
            throw .invalid
        }
        if lookup.discoversPrefix {
            let timeToLive = view.minimumTimeToLive ?? 0
            notePrefix(facts.addresses, timeToLive: timeToLive, at: now)
        }
        switch translate(kept.span.octets.extracting(..<count), lookup, verdict, into: &output) {
        case .none: break
        case .written(let length):
            count = length
            swap(&kept, &output)
        case .asksForAddresses(let absent):
            (buffers.kept, buffers.output) = (kept, output)
            end(attempt, &lookup)
            return askForAddresses(lookup, slot, absent, at: now)
        case .impossible:
            (buffers.kept, buffers.output) = (kept, output)
            throw .invalid
        }
        guard rewrite(&kept, &count, &verdict, lookup, &output) else {
            (buffers.kept, buffers.output) = (kept, output)
            throw .invalid
        }
        end(attempt, &lookup)
        cancelAttempts(of: &lookup, slowAt: now)
        conclude(lookup, slot, kept.span.octets.extracting(..<count), verdict, freshness, at: now, &output)
        (buffers.kept, buffers.output) = (kept, output)
    }

    /// Ends a lookup that was taken out and has no exchange any more: keeps the answer, and gives it to all who wait.
    mutating func conclude(
        _ lookup: Lookup, _ slot: Int, _ message: RawSpan, _ verdict: AnswerVerdict,
        _ freshness: AnswerFreshness = AnswerFreshness(), at now: Instant, _ output: inout [UInt8]
    ) {
        if let lifetime = AnswerNormalizer.lifetime(of: message, freshness) {
            keep(message, lookup, .answer, verdict, for: lifetime, at: now, &output)
        } else {
            // What was kept before is not what servers say any more (RFC 8767 §4).
            forget(lookup, at: now, &output)
        }
        lookups.end(lookup, slot)
        for waiting in lookup.waiting {
            if verdict == .passes { counters.forwarded &+= 1 }
            answer(waiting, &output) { (provider, query, output) in
                if let count = provider.holdBack(verdict, query, by: waiting.transport, into: &output) { return count }
                output.copy(message, to: 0)
                return provider.composer.relay(
                    count: message.byteCount, age: .seconds(0), scope: lookup.scopeLength ?? 0, to: query,
                    by: waiting.transport, into: &output)
            }
        }
    }

    private static func keepsCase(_ view: borrowing DNSMessageView, _ attempt: Attempt) -> Bool {
        guard let sent = try? DNSMessageView(checking: attempt.sent.span.octets), let asked = sent.question,
            let answered = view.question
        else { return false }
        return answered.name.hasSameOctets(as: asked.name)
    }

    /// Writes an answer for one who waits.
    mutating func answer(
        _ waiting: WaitingQuery, _ output: inout [UInt8],
        _ write: (inout DNSProxyProvider, borrowing QueryView, inout MutableRawSpan) -> Int
    ) {
        var span = output.mutableSpan
        var octets = span.mutableOctets
        let query = waiting.query
        var count = write(&self, query, &octets)
        if let aliases = waiting.aliases {
            count = lead(aliases, to: count, limit: composer.limit(query, waiting.transport), &octets)
        }
        note(waiting, octets.bytes.extracting(..<count))
        emit(.answer(waiting.client, [UInt8](copying: octets.bytes.extracting(..<count))))
    }

    /// Keeps an answer under the question of a lookup.
    mutating func keep(
        _ message: RawSpan, _ lookup: Lookup, _ kind: CacheEntry.Kind, _ verdict: AnswerVerdict,
        failureCount: UInt8 = 0,
        for lifetime: Interval, at now: Instant, _ scratch: inout [UInt8]
    ) {
        var span = scratch.mutableSpan
        var octets = span.mutableOctets
        let query = lookup.first.query
        let question = query.question
        let flags = CacheKey.flags(lookup.keyFlags, number: cacheNumber(of: lookup, kind))
        cache.store(
            message, question, flags: flags, kind: kind, verdict: verdict,
            generation: rulesGeneration,
            failureCount: failureCount, at: now, for: lifetime, scratch: &octets)
    }

    /// Removes what is kept for the question of a lookup.
    private mutating func forget(_ lookup: Lookup, at now: Instant, _ scratch: inout [UInt8]) {
        // What is kept for all, or for another network, is not what this says anything about.
        guard lookup.subnet == nil else { return }
        var span = scratch.mutableSpan
        var octets = span.mutableOctets
        let query = lookup.first.query
        let question = query.question
        cache.remove(question, flags: lookup.keyFlags, at: now, scratch: &octets)
    }
}

extension ResponseCode {
    /// YXDOMAIN, 6: the name that a DNAME makes is too long (RFC 6672 §2.2).
    fileprivate static var nameTooLong: Self { Self(rawValue: 6) }
}
