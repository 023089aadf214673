internal import ByteAccess
internal import DNSMessage
internal import Provider

extension DNSProxyProvider {
    /// What DNS64 makes of an answer.
    enum TranslationStep {
        /// Clients get the answer as it is.
        case none
        /// Clients get what was written; its length in bytes.
        case written(Int)
        /// Servers are asked for the IPv4 addresses.
        case asksForAddresses(AbsentAddresses)
        /// What was to be written does not fit.
        case impossible
    }

    /// True when the lookup is for IPv6 addresses that may be made. Who checks signatures itself makes them itself (RFC 6147 §5.5).
    func translates(_ lookup: borrowing Lookup) -> Bool {
        guard discovery.prefix != nil, lookup.type == .aaaa, !lookup.discoversPrefix, case .question = lookup.phase
        else {
            return false
        }
        return !(lookup.dnssecOK && lookup.checkingDisabled)
    }

    /// Looks at an answer, and writes to `buffer` what clients get instead. What is held back is written too, to be judged anew when
    /// rules are others, but nothing more is asked for it.
    func translate(
        _ answer: RawSpan, _ lookup: borrowing Lookup, _ verdict: AnswerVerdict, into buffer: inout [UInt8]
    ) -> TranslationStep {
        if case .question = lookup.phase, !translates(lookup) { return .none }
        guard let answer = try? DNSMessageView(checking: answer) else { return .impossible }
        let query = lookup.first.query
        let question = query.question
        let count: Int?
        switch lookup.phase {
        case .question:
            guard translates(lookup), verdict == .passes else { return .none }
            if answer.answerKind == .noData {
                let timeToLive = answer.negativeTimeToLive ?? AbsentAddresses.usualTimeToLive
                return .asksForAddresses(
                    AbsentAddresses(answer: [UInt8](copying: answer.bytes), timeToLive: timeToLive))
            }
            guard answer.answerKind == .records else { return .none }
            let counts = AnswerTranslation.addressCounts(answer)
            if counts.real == 0 { return .asksForAddresses(AbsentAddresses()) }
            if counts.excluded == 0 { return .none }
            count = AnswerTranslation.writeRealAddresses(of: answer, question: question, into: &buffer)
        case .addresses(let absent):
            if let prefix = discovery.prefix,
                AnswerTranslation.hasAddress(answer, for: prefix) || absent.answer == nil
                    || answer.answerKind == .nameError
            {
                // That there is no such name is the better answer (RFC 6147 §5.1.6).
                count = AnswerTranslation.writeAddresses(
                    of: answer, behind: prefix, absent, question: question, into: &buffer)
            } else if let answer = absent.answer {
                Self.copy(answer, to: &buffer)
                count = answer.count
            } else {
                // The prefix is gone, and there is nothing to go by.
                return .impossible
            }
        case .reverse(let name):
            count = AnswerTranslation.writeReverse(of: answer, name, question: question, into: &buffer)
        }
        return count.map { .written($0) } ?? .impossible
    }

    private static func copy(_ bytes: [UInt8], to buffer: inout [UInt8]) {
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        output.copy(bytes.span.octets, to: 0)
    }

    /// Goes on with a lookup that was taken out, of IPv6 addresses that there are none of: with those of IPv4.
    mutating func askForAddresses(
        _ lookup: consuming Lookup, _ slot: Int, _ absent: AbsentAddresses, at now: Instant
    ) {
        cancelAttempts(of: &lookup, slowAt: now)
        lookup.phase = .addresses(absent)
        (lookup.refusal, lookup.failure) = (nil, nil)
        if !concludeFromCache(lookup, slot, at: now) { begin(lookup, slot, at: now) }
    }

    /// Ends a lookup with the IPv4 addresses that are kept: clients often ask for both kinds at once.
    ///
    /// - Returns: False when there are none.
    private mutating func concludeFromCache(_ lookup: Lookup, _ slot: Int, at now: Instant) -> Bool {
        var kept = takeBuffer(&buffers.kept)
        var output = takeBuffer(&buffers.output)
        defer { (buffers.kept, buffers.output) = (kept, output) }
        guard let found = copyKeptAddresses(lookup, at: now, to: &kept),
            let verdict = verdict(on: kept.span.octets.extracting(..<found), lookup),
            case .written(let count) = translate(kept.span.octets.extracting(..<found), lookup, verdict, into: &output)
        else { return false }
        conclude(lookup, slot, output.span.octets.extracting(..<count), verdict, at: now, &kept)
        return true
    }

    /// What policy makes of an answer that is kept; nil when it cannot be read.
    func verdict(on answer: RawSpan, _ lookup: borrowing Lookup) -> AnswerVerdict? {
        guard let view = try? DNSMessageView(checking: answer) else { return nil }
        return verdict(on: ViewAnswerReader().facts(of: view), of: lookup)
    }

    /// Copies the IPv4 addresses that are kept for the name of a lookup, as old as they are.
    ///
    /// - Returns: The answer's length in bytes; nil when there is none.
    private mutating func copyKeptAddresses(
        _ lookup: borrowing Lookup, at now: Instant, to buffer: inout [UInt8]
    ) -> Int? {
        // They may have been made for another network.
        guard lookup.subnet == nil else { return nil }
        var bytes = lookup.first.bytes
        let typeOffset = lookup.first.questionEnd - 4
        (bytes[typeOffset], bytes[typeOffset + 1]) = (0, UInt8(truncatingIfNeeded: RecordType.a.rawValue))
        guard let query = try? QueryView(checking: bytes.span.octets) else { return nil }
        let question = query.question
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        guard let hit = cache.find(question, flags: CacheKey.flags(of: query), at: now, into: &output),
            hit.entry.kind == .answer
        else { return nil }
        let age = UInt32(clamping: now.since(hit.entry.storedAt).nanoseconds / 1_000_000_000)
        guard (try? MessageEditing.age(&output, by: age)) != nil else { return nil }
        return hit.byteCount
    }

    /// True when a lookup that nobody could answer goes on with IPv4: any failure counts as the absence of IPv6 addresses
    /// (RFC 6147 §5.1.2 and §5.1.3).
    func goesOnWithAddresses(_ lookup: borrowing Lookup, at now: Instant) -> Bool {
        isRunning && !lookup.isBogus && lookup.isWanted && now < lookup.deadline && translates(lookup)
    }
}
