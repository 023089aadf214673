internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Answers to plain queries, made in one pass. What comes out is what the way of all other queries makes of the same entry.
extension AnswerCache {
    /// Writes the answer to a query, whole and ready to be sent.
    ///
    /// - Parameters:
    ///   - bytes: The query.
    ///   - generation: That of the rules and all else that decides which questions are answered from here.
    ///   - prefetches: True when an answer that is due to be asked for anew is none for this way.
    ///   - limit: The most bytes that the answer may have.
    /// - Returns: Its length in bytes; nil when there is none, or more has to be looked at. The output has anything then.
    @inline(__always)
    mutating func answer(
        _ query: PlainQuery, _ bytes: RawSpan, generation: UInt32, prefetches: Bool, limit: Int, at now: Instant,
        into output: inout MutableRawSpan
    ) -> Int? {
        guard count > 0 else { return nil }
        let question = bytes.extracting(DNSHeader.byteCount..<query.questionEnd)
        let keyFlags: UInt8 = (query.dnssecOK ? 1 : 0) | (query.flags.contains(.checkingDisabled) ? 2 : 0)
        let hash = questionHash.hash(of: question, flags: keyFlags)
        var index = memory[place: place(of: hash)]
        while index != CacheEntry.none {
            let entry = memory[entry: index]
            if entry.hash == hash, entry.keyFlags == keyFlags, asksSame(entry, question) {
                guard entry.plainGeneration == generation, now < entry.expiresAt else { return nil }
                if prefetches, entry.isDueForPrefetch(at: now) { return nil }
                if !entry.wasUsed { memory[entry: index].wasUsed = true }
                return write(entry, to: query, question, limit: limit, at: now, into: &output)
            }
            index = entry.nextInPlace
        }
        return nil
    }

    /// Notes that a query was answered with what was just found, and that nothing else was asked about the question or the answer: until
    /// the generation is another one, the same holds for each plain query.
    mutating func notePlain(_ hit: Hit, generation: UInt32) {
        if hit.entry.plainGeneration != generation { memory[entry: hit.index].plainGeneration = generation }
    }

    /// True when an entry's question, which has to be within its first block, is this one.
    @inline(__always)
    private func asksSame(_ entry: CacheEntry, _ question: RawSpan) -> Bool {
        let end = DNSHeader.byteCount + question.byteCount
        guard end <= CacheMemory.blockPayload, end <= Int(entry.byteCount) else { return false }
        return memory.bytes(ofBlock: entry.firstBlock, count: end).extracting(DNSHeader.byteCount...)
            .isSameQuestion(as: question)
    }

    @inline(__always)
    private func write(
        _ entry: CacheEntry, to query: PlainQuery, _ question: RawSpan, limit: Int, at now: Instant,
        into output: inout MutableRawSpan
    ) -> Int? {
        let count = Int(entry.byteCount)
        let length = query.hasEDNS ? count + 11 : count
        guard length <= limit else { return nil }
        memory.copy(from: entry.firstBlock, count: count, to: &output)

        let stored = DNSFlags(rawValue: output.bytes.bigEndianUInt16(at: 2))
        var flags = query.flags.intersection([.recursionDesired, .checkingDisabled])
        flags.formUnion([.response, .recursionAvailable])
        flags.formUnion(stored.intersection(.truncated))
        if query.understandsAuthenticData { flags.formUnion(stored.intersection(.authenticData)) }
        flags.responseCode = stored.responseCode
        output.storeBigEndian(query.id, at: 0)
        output.storeBigEndian(flags.rawValue, at: 2)
        // In the letters of the client.
        output.copy(question, to: DNSHeader.byteCount)

        let additional = output.bytes.bigEndianUInt16(at: 10)
        let seconds = UInt32(clamping: now.since(entry.storedAt).nanoseconds / 1_000_000_000)
        if seconds > 0 {
            let records =
                Int(output.bytes.bigEndianUInt16(at: 6)) + Int(output.bytes.bigEndianUInt16(at: 8)) + Int(additional)
            var message = output.slice(0..<count)
            guard MessageEditing.age(&message, records: records, from: query.questionEnd, by: seconds) else {
                return nil
            }
        }
        guard query.hasEDNS else { return length }
        guard additional < .max else { return nil }
        output.storeBigEndian(additional + 1, at: 10)
        // The root and the type; our own size; no code, version 0; DO as the client has it; no options (RFC 6891 §6.1.2).
        output.store(0, at: count)
        output.storeBigEndian(RecordType.opt.rawValue, at: count + 1)
        output.storeBigEndian(EDNSFields.defaultUDPPayloadSize, at: count + 3)
        output.storeBigEndian(query.dnssecOK ? 0x8000 as UInt32 : 0, at: count + 5)
        output.storeBigEndian(0 as UInt16, at: count + 9)
        return length
    }
}
