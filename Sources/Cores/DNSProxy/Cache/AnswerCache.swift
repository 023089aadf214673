internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Whole answers under their questions, in a fixed amount of memory.
///
/// Finding an answer copies it out and allocates nothing. What has to go when there is no room is chosen by SIEVE (Zhang et al., NSDI
/// 2024): a hand goes from the oldest entry to the newest and round again, spares once what was used since it last came by, and removes
/// what was not, or is too old anyway.
struct AnswerCache: ~Copyable, Sendable {
    /// What is found.
    struct Hit {
        /// The entry, until the cache is changed.
        let index: UInt32
        let entry: CacheEntry
        /// The answer's length in bytes; it is at the start of the output.
        var byteCount: Int { Int(entry.byteCount) }
    }

    private let passedByAddress = PassedByAddress()
    private let byteLimit: Int
    var memory: CacheMemory
    let questionHash = QuestionHash()
    private var usedEntries = 0
    private var usedBlocks = 0
    private var freeEntry = CacheEntry.none
    private var freeBlock = CacheEntry.none
    private var freeBlockCount = 0
    private var newest = CacheEntry.none
    private var oldest = CacheEntry.none
    private var hand = CacheEntry.none

    /// How many answers there are.
    private(set) var count = 0
    /// How many had to go before their time because there was no room.
    private(set) var evictionCount: UInt64 = 0

    /// A cache that takes `byteLimit` bytes of memory at most; one of too few bytes keeps nothing.
    ///
    /// - Parameter evictionCount: What the cache before counted.
    init(byteLimit: Int, evictionCount: UInt64 = 0) {
        self.byteLimit = byteLimit
        self.evictionCount = evictionCount
        memory = CacheMemory(byteLimit: byteLimit)
    }

    /// How many bytes of memory are set aside: never more than the limit.
    var allocatedByteCount: Int { memory.byteCount }

    /// How many of them answers take up with what describes them.
    var usedByteCount: Int {
        (usedBlocks - freeBlockCount) * CacheMemory.blockByteCount + count * CacheEntry.byteCount
    }

    // MARK: Finding

    /// Looks for the answer to a question, and copies it to the start of `output`, which has room for any message.
    ///
    /// - Parameters:
    ///   - flags: Those of the question's key: see ``CacheKey/flags`` and ``CacheKey/flags(_:number:)``.
    ///   - tolerance: For how long after it expired an answer is still found.
    mutating func find(
        _ question: borrowing QuestionView, flags: UInt8, at now: Instant, tolerance: Interval = .seconds(0),
        into output: inout MutableRawSpan
    ) -> Hit? {
        guard count > 0 else { return nil }
        let hash = questionHash.hash(of: question.octets, flags: flags)
        var index = memory[place: place(of: hash)]
        while index != CacheEntry.none {
            var entry = memory[entry: index]
            if entry.hash == hash, entry.keyFlags == flags {
                memory.copy(from: entry.firstBlock, count: Int(entry.byteCount), to: &output)
                // Two questions may have one hash: the answer's own question decides.
                if (try? MessageEditing.copyQuestionCase(from: question, in: &output)) == true {
                    guard now < entry.expiresAt + tolerance else { return nil }
                    if entry.countUse() || !entry.wasUsed {
                        entry.wasUsed = true
                        memory[entry: index] = entry
                    }
                    return Hit(index: index, entry: entry)
                }
            }
            index = entry.nextInPlace
        }
        return nil
    }

    /// The entry that was just found, with what was noted since.
    func entry(of hit: Hit) -> CacheEntry { memory[entry: hit.index] }

    /// Notes what other rules make of an answer that was just found.
    mutating func note(_ verdict: AnswerVerdict, of hit: Hit, generation: UInt32) {
        var entry = memory[entry: hit.index]
        entry.verdict = verdict
        entry.rulesGeneration = generation
        memory[entry: hit.index] = entry
    }

    /// Notes that servers were asked in vain about an answer that was just found and is too old: for `pause` it is given out without
    /// asking again.
    mutating func postpone(_ hit: Hit, by pause: Interval, at now: Instant) {
        var entry = memory[entry: hit.index]
        let length = now.since(entry.expiresAt) + pause
        entry.recheckMilliseconds = UInt32(clamping: length.nanoseconds / 1_000_000)
        memory[entry: hit.index] = entry
    }

    /// Notes that an answer that was just found is asked for anew.
    mutating func notePrefetch(of hit: Hit) { memory[entry: hit.index].countPrefetch() }

    // MARK: Storing

    /// Keeps an answer, in place of the one that was kept for the question before.
    ///
    /// - Parameters:
    ///   - message: The answer, with its question and without an OPT record.
    ///   - scratch: Room for any message.
    /// - Returns: False when it is too large to be kept.
    @discardableResult
    mutating func store(
        _ message: RawSpan, _ question: borrowing QuestionView, flags: UInt8, kind: CacheEntry.Kind,
        verdict: AnswerVerdict, generation: UInt32, failureCount: UInt8 = 0, at now: Instant, for lifetime: Interval,
        scratch: inout MutableRawSpan
    ) -> Bool {
        remove(question, flags: flags, at: now, scratch: &scratch)
        let needed = (message.byteCount + CacheMemory.blockPayload - 1) / CacheMemory.blockPayload
        // One answer must not drive out all others.
        guard needed > 0, needed <= max(4, memory.blockCount / 16), needed <= memory.blockCount,
            message.byteCount <= UInt16.max
        else { return false }
        while memory.blockCount - usedBlocks + freeBlockCount < needed || count == memory.entryCapacity {
            evict(at: now)
        }
        let index = takeEntry()
        let hash = questionHash.hash(of: question.octets, flags: flags)
        let place = place(of: hash)
        memory[entry: index] = CacheEntry(
            hash: hash, storedAtNanoseconds: now.nanoseconds, expiresAtNanoseconds: (now + lifetime).nanoseconds,
            rulesGeneration: generation,
            firstBlock: write(message), nextInPlace: memory[place: place], newer: CacheEntry.none, older: newest,
            byteCount: UInt16(truncatingIfNeeded: message.byteCount), keyFlags: flags, kind: kind,
            verdict: verdict, wasUsed: false, failureCount: failureCount)
        memory[place: place] = index
        if newest == CacheEntry.none { oldest = index } else { memory[entry: newest].newer = index }
        newest = index
        count += 1
        return true
    }

    // MARK: Removing

    /// Removes all answers, and gives the memory back that they were in.
    mutating func removeAll() {
        self = AnswerCache(byteLimit: byteLimit, evictionCount: evictionCount)
    }

    /// Removes the older half.
    mutating func removeOlderHalf() {
        for _ in 0..<count / 2 where oldest != CacheEntry.none { remove(oldest) }
    }

    /// Forgets that nobody could answer: whoever could not may be able to now.
    mutating func removeFailures() {
        var index = oldest
        while index != CacheEntry.none {
            let entry = memory[entry: index]
            if entry.kind == .failure {
                remove(index)
            } else if entry.recheckMilliseconds > 0 {
                memory[entry: index].recheckMilliseconds = 0
            }
            index = entry.newer
        }
    }

    /// Removes what is kept for a question, however old it is.
    mutating func remove(
        _ question: borrowing QuestionView, flags: UInt8, at now: Instant, scratch: inout MutableRawSpan
    ) {
        if let hit = find(question, flags: flags, at: now, tolerance: .endless, into: &scratch) { remove(hit.index) }
    }

    /// Removes what is known of a name and of what is below it, of whatever type.
    ///
    /// - Parameter scratch: Room for any message.
    /// - Returns: How many answers are gone.
    @discardableResult
    mutating func remove(_ name: borrowing DomainNameView, scratch: inout MutableRawSpan) -> Int {
        var (index, removed) = (oldest, 0)
        while index != CacheEntry.none {
            let entry = memory[entry: index]
            memory.copy(from: entry.firstBlock, count: Int(entry.byteCount), to: &scratch)
            let message = scratch.bytes.extracting(..<Int(entry.byteCount))
            if let owner = try? DomainNameView(checking: message, at: DNSHeader.byteCount), owner.isSubdomain(of: name)
            {
                remove(index)
                removed += 1
            }
            index = entry.newer
        }
        return removed
    }

    private mutating func evict(at now: Instant) {
        if hand == CacheEntry.none { hand = oldest }
        while true {
            var entry = memory[entry: hand]
            guard entry.wasUsed, now < entry.expiresAt else { break }
            entry.wasUsed = false
            memory[entry: hand] = entry
            hand = entry.newer == CacheEntry.none ? oldest : entry.newer
        }
        if now < memory[entry: hand].expiresAt { evictionCount &+= 1 }
        remove(hand)
    }

    private mutating func remove(_ index: UInt32) {
        let entry = memory[entry: index]
        if hand == index { hand = entry.newer }
        if entry.newer == CacheEntry.none {
            newest = entry.older
        } else {
            memory[entry: entry.newer].older = entry.older
        }
        if entry.older == CacheEntry.none {
            oldest = entry.newer
        } else {
            memory[entry: entry.older].newer = entry.newer
        }
        let place = place(of: entry.hash)
        if memory[place: place] == index {
            memory[place: place] = entry.nextInPlace
        } else {
            var previous = memory[place: place]
            while memory[entry: previous].nextInPlace != index { previous = memory[entry: previous].nextInPlace }
            memory[entry: previous].nextInPlace = entry.nextInPlace
        }
        free(entry)
        memory[entry: index].nextInPlace = freeEntry
        freeEntry = index
        count -= 1
    }

    // MARK: Memory

    /// Where a hash leads to.
    @inline(__always)
    func place(of hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (memory.placeCount - 1) }

    private mutating func takeEntry() -> UInt32 {
        guard freeEntry != CacheEntry.none else {
            usedEntries += 1
            return UInt32(truncatingIfNeeded: usedEntries - 1)
        }
        let index = freeEntry
        freeEntry = memory[entry: index].nextInPlace
        return index
    }

    private mutating func takeBlock() -> UInt32 {
        guard freeBlock != CacheEntry.none else {
            usedBlocks += 1
            return UInt32(truncatingIfNeeded: usedBlocks - 1)
        }
        let block = freeBlock
        freeBlock = memory[nextOf: block]
        freeBlockCount -= 1
        return block
    }

    /// Writes a message into free blocks, of which there are enough.
    private mutating func write(_ message: RawSpan) -> UInt32 {
        let first = takeBlock()
        var (block, offset) = (first, 0)
        while true {
            let end = min(offset + CacheMemory.blockPayload, message.byteCount)
            memory.write(message.extracting(offset..<end), toBlock: block)
            offset = end
            guard offset < message.byteCount else { return first }
            let next = takeBlock()
            memory[nextOf: block] = next
            block = next
        }
    }

    private mutating func free(_ entry: CacheEntry) {
        var block = entry.firstBlock
        for remaining in stride(from: Int(entry.byteCount), to: 0, by: -CacheMemory.blockPayload) {
            let next = remaining > CacheMemory.blockPayload ? memory[nextOf: block] : CacheEntry.none
            memory[nextOf: block] = freeBlock
            freeBlock = block
            freeBlockCount += 1
            block = next
        }
    }
}

extension Interval {
    /// Longer than any clock runs.
    static var endless: Interval { Interval(nanoseconds: .max) }
}
