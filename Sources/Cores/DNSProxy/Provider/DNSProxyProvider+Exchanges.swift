internal import ByteAccess
public import DNSMessage
public import Provider

extension DNSProxyProvider {
    /// Writes the query of an exchange. The host asks for it when it is about to send it; asked again, the query may have another ID
    /// and other letters, and only the answer to the last one counts.
    ///
    /// - Parameters:
    ///   - entropy: What nobody can foresee; new for each query.
    ///   - output: Room for a query of 512 bytes at least.
    /// - Returns: The query's length in bytes; nil when the exchange is over.
    public mutating func writeQuery(
        of exchange: ExchangeID, entropy: QueryEntropy, into output: inout MutableRawSpan
    ) -> Int? {
        guard let place = lookups.place(of: exchange), let lookup = lookups.take(place.slot) else { return nil }
        let upstream = upstreams[lookup.attempts[place.attempt].upstream.index].upstream
        let written = Self.write(
            lookup, lookup.attempts[place.attempt], wantsAuthenticData: upstream.isTrustedForAuthenticData, entropy,
            into: &output)
        lookups.restore(consume lookup, place.slot)
        guard let written else { return nil }
        var sent = [UInt8](copying: output.bytes.extracting(..<written.questionEnd))
        for offset in 6..<12 { sent[offset] = 0 }
        lookups.noteSent(sent, slot: place.slot, attempt: place.attempt)
        return written.count
    }

    /// Returns the length of the query and where its question ends.
    private static func write(
        _ lookup: borrowing Lookup, _ attempt: borrowing Attempt, wantsAuthenticData: Bool, _ entropy: QueryEntropy,
        into output: inout MutableRawSpan
    ) -> (count: Int, questionEnd: Int)? {
        do throws(DNSMessageError) {
            var outgoing = OutgoingQuery(
                // All queries of one question are the same bytes by HTTPS, for its caches (RFC 8484 §4.1).
                id: attempt.transport == .https ? 0 : entropy.id, checkingDisabled: lookup.checkingDisabled,
                wantsAuthenticData: wantsAuthenticData, edns: nil)
            if attempt.usesEDNS {
                var edns = EDNSFields(dnssecOK: lookup.dnssecOK)
                edns.clientSubnet = lookup.subnet
                if attempt.transport.isEncrypted { edns.paddingBlock = EDNSFields.queryPaddingBlock }
                outgoing.edns = edns
            }
            let query = lookup.first.query
            let question = query.question
            let count: Int
            var questionEnd = lookup.first.questionEnd
            switch lookup.phase {
            case .question: count = try outgoing.write(question.name, type: question.type, into: &output)
            case .addresses: count = try outgoing.write(question.name, type: .a, into: &output)
            case .reverse(let name):
                let view = name.view
                count = try outgoing.write(view, type: .ptr, into: &output)
                questionEnd = DNSHeader.byteCount + view.length + 4
            }
            if attempt.mixesCase { try MessageEditing.mixQuestionCase(in: &output, entropy: entropy.letters) }
            return (count, questionEnd)
        } catch {
            return nil
        }
    }

    /// Something came for an exchange.
    ///
    /// - Parameters:
    ///   - answer: What came, without the length that TCP puts in front.
    ///   - freshness: What HTTP says about its age.
    ///   - reader: Reads it once more, for policy. An answer that it does not take is none.
    /// - Returns: Whether the exchange is over. Only one by UDP ever goes on: anybody may send datagrams.
    public mutating func received(
        _ answer: RawSpan, for exchange: ExchangeID, freshness: AnswerFreshness = AnswerFreshness(),
        reader: borrowing some AnswerReader, at now: Instant
    ) -> ExchangeDisposition {
        guard let (slot, index) = lookups.place(of: exchange), var lookup = lookups.take(slot) else { return .finished }
        let attempt = lookup.attempts[index]
        let upstream = attempt.upstream
        do throws(Unusable) {
            let view = try Self.check(answer, attempt)
            try receive(view, attempt, slot, &lookup, freshness, reader, at: now)
            return .finished
        } catch {
            switch error {
            case .notTheAnswer:
                counters.wrongAnswers &+= 1
                guard attempt.transport != .udp else {
                    lookups.put(lookup, slot)
                    return .keepWaiting
                }
                fail(attempt, .invalidAnswer, lookup, slot, at: now)
                return .finished
            case .invalid:
                counters.wrongAnswers &+= 1
                fail(attempt, .invalidAnswer, lookup, slot, at: now)
                return .finished
            case .lostCase:
                counters.wrongAnswers &+= 1
                if !lookup.hasCheckedCase {
                    // A forger may have sent it, or the server does not keep letters: a connection tells which.
                    lookup.hasCheckedCase = true
                    lookup.attempts[index].isPassedOver = true
                    self.attempt(
                        &lookup, slot, upstream, by: .tcp, isFresh: false, isPassedOver: attempt.isPassedOver, at: now)
                    if !attempt.isPassedOver { scheduleStep(&lookup, at: now) }
                }
                lookups.put(lookup, slot)
                return .keepWaiting
            case .needsTCP:
                upstreams[upstream.index].noteAnswer(since: attempt.begin, at: now)
                replace(attempt, of: &lookup, slot, by: .tcp, usesEDNS: attempt.usesEDNS, at: now)
                lookups.put(lookup, slot)
                return .finished
            case .needsNoEDNS:
                upstreams[upstream.index].noteAnswer(since: attempt.begin, at: now)
                replace(attempt, of: &lookup, slot, by: attempt.transport, usesEDNS: false, at: now)
                lookups.put(lookup, slot)
                return .finished
            case .refused(let code, let reason):
                upstreams[upstream.index].noteAnswer(since: attempt.begin, at: now)
                end(attempt, &lookup)
                lookup.refusal = (code, reason)
                goOn(after: attempt, lookup, slot, isWorthAFreshConnection: false, at: now)
                return .finished
            case .bogus(let reason):
                upstreams[upstream.index].noteAnswer(since: attempt.begin, at: now)
                end(attempt, &lookup)
                lookup.refusal = (.serverFailure, reason)
                lookup.isBogus = true
                fail(lookup, slot, reason, at: now)
                return .finished
            }
        }
    }

    /// An exchange came to nothing. Nothing happens when it is over already.
    public mutating func failed(_ exchange: ExchangeID, _ failure: ExchangeFailure, at now: Instant) {
        guard let (slot, index) = lookups.place(of: exchange), let lookup = lookups.take(slot) else { return }
        let attempt = lookup.attempts[index]
        fail(attempt, failure, lookup, slot, at: now)
    }

    private mutating func fail(
        _ attempt: Attempt, _ failure: ExchangeFailure, _ lookup: consuming Lookup, _ slot: Int, at now: Instant
    ) {
        let index = attempt.upstream.index
        if attempt.isOverdue, failure == .timedOut {
            // That the server is silent was noted when it had had its time.
            upstreams[index].countFailure(failure)
        } else {
            upstreams[index].note(failure, at: now)
        }
        if attempt.isProbe { upstreams[index].health.endProbation() }
        let name = upstreams[index].upstream.name
        log(.verbose, "an exchange with the upstream \(private: name) failed: \(failure)")
        end(attempt, &lookup)
        lookup.failure = failure
        goOn(after: attempt, lookup, slot, isWorthAFreshConnection: failure.isWorthAFreshConnection, at: now)
    }

    /// Forgets an exchange that is over.
    mutating func end(_ attempt: Attempt, _ lookup: inout Lookup) {
        lookup.attempts.removeAll { $0.id == attempt.id }
    }
}
