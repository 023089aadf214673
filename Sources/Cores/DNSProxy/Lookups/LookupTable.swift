internal import Provider

/// All questions under way. The number of an exchange tells which of them it is for.
struct LookupTable: Sendable {
    /// How many bits of an exchange's number tell its lookup; the others count.
    private static let slotBits: UInt64 = 24
    private static let slotMask: UInt64 = 1 << slotBits - 1

    private var slots: [Lookup?] = []
    private var free: [Int] = []
    private var byKey = LookupKeys()
    private var byClient = NumberTable()
    private var lastExchange: UInt64 = 0
    private var deadlines = DeadlineHeap()

    /// How many there are.
    private(set) var count = 0
    /// How many there are that began as a prefetch.
    private(set) var prefetchCount = 0
    /// How many queries of clients wait.
    var waitingCount: Int { byClient.count }
    /// When the first has something to do.
    var nextDeadline: Instant? { deadlines.first?.deadline }
    /// The slots that are in use.
    var occupied: [Int] { slots.indices.filter { slots[$0] != nil } }

    /// The slot of the lookup with a key.
    func slot(of key: [UInt8]) -> Int? { byKey.slot(of: key) }
    /// The slot of the lookup that an exchange belongs to.
    func slot(of exchange: ExchangeID) -> Int? {
        let slot = Int(truncatingIfNeeded: exchange.rawValue & Self.slotMask)
        guard slot < slots.count, let attempts = slots[slot]?.attempts, attempts.contains(where: { $0.id == exchange })
        else { return nil }
        return slot
    }
    /// True when a client's query waits.
    func isWaiting(_ client: ClientToken) -> Bool { byClient[client.rawValue] != nil }
    /// The slot of the first lookup that has something to do.
    func due(at now: Instant) -> Int? {
        guard let first = deadlines.first, first.deadline <= now else { return nil }
        return first.owner
    }

    /// Adds a lookup.
    mutating func insert(_ lookup: Lookup) -> Int {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(nil) }
        byKey.insert(lookup.tableKey, slot)
        count += 1
        if lookup.isPrefetch { prefetchCount += 1 }
        put(lookup, slot)
        for waiting in lookup.waiting { byClient.set(slot, for: waiting.client.rawValue) }
        return slot
    }

    /// Lets one more wait. Where an answer has become too old since the lookup began, it is given when nobody has one in time.
    mutating func join(_ query: WaitingQuery, _ slot: Int, staleDeadline: Instant?) {
        byClient.set(slot, for: query.client.rawValue)
        slots[slot]?.waiting.append(query)
        guard let staleDeadline, var lookup = take(slot) else { return }
        lookup.staleDeadline = lookup.staleDeadline ?? staleDeadline
        put(lookup, slot)
    }

    /// Takes a lookup out to be changed; ``put(_:_:)`` or ``end(_:_:)`` has to follow.
    mutating func take(_ slot: Int) -> Lookup? {
        var taken: Lookup?
        swap(&taken, &slots[slot])
        return taken
    }

    /// Puts a lookup back.
    mutating func put(_ lookup: Lookup, _ slot: Int) {
        deadlines.set(lookup.nextDeadline, for: slot)
        slots[slot] = lookup
    }

    /// Forgets a lookup that was taken out.
    mutating func end(_ lookup: Lookup, _ slot: Int) {
        deadlines.remove(slot)
        byKey.remove(slot)
        count -= 1
        for waiting in lookup.waiting { byClient.remove(waiting.client.rawValue) }
        if lookup.isPrefetch { prefetchCount -= 1 }
        free.append(slot)
    }

    /// The number of a new exchange, for the lookup in a slot.
    mutating func nextExchange(_ slot: Int) -> ExchangeID {
        lastExchange += 1
        return ExchangeID(rawValue: lastExchange << Self.slotBits | UInt64(slot))
    }

    /// Reads an attempt, and lets it be changed.
    mutating func withAttempt<Result>(
        _ exchange: ExchangeID, _ body: (borrowing Lookup, inout Attempt) -> Result
    ) -> Result? {
        guard let slot = slot(of: exchange), var lookup = take(slot) else { return nil }
        defer { slots[slot] = lookup }
        guard let index = lookup.attempts.firstIndex(where: { $0.id == exchange }) else { return nil }
        var attempt = lookup.attempts[index]
        defer { lookup.attempts[index] = attempt }
        return body(lookup, &attempt)
    }

    /// Lets nobody wait any more for a lookup that was taken out.
    ///
    /// - Returns: Who waited.
    mutating func release(_ lookup: inout Lookup) -> [WaitingQuery] {
        for waiting in lookup.waiting { byClient.remove(waiting.client.rawValue) }
        defer { lookup.waiting = [] }
        return lookup.waiting
    }

    /// Changes a lookup where it is; its deadlines stay.
    mutating func change(_ slot: Int, _ body: (inout Lookup) -> Void) {
        guard var lookup = take(slot) else { return }
        body(&lookup)
        slots[slot] = lookup
    }

    /// Forgets a client's query. True when it waited.
    mutating func leave(_ client: ClientToken) -> Bool {
        guard let slot = byClient.remove(client.rawValue) else { return false }
        slots[slot]?.waiting.removeAll { $0.client == client }
        return true
    }
}
