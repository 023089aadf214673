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
    /// The slot of the lookup that an exchange belongs to, and the place of the attempt that it is for; nil when it is over.
    func place(of exchange: ExchangeID) -> (slot: Int, attempt: Int)? {
        let slot = Int(truncatingIfNeeded: exchange.rawValue & Self.slotMask)
        guard slot < slots.count, let attempt = slots[slot]?.attempts.firstIndex(where: { $0.id == exchange }) else {
            return nil
        }
        return (slot, attempt)
    }
    /// True when a client's query waits.
    func isWaiting(_ client: ClientToken) -> Bool { byClient[client.rawValue] != nil }
    /// The slot of the first lookup that has something to do.
    func due(at now: Instant) -> Int? {
        guard let first = deadlines.first, first.deadline <= now else { return nil }
        return first.owner
    }

    /// Gives a new lookup a slot, as if it had been taken out of it: ``put(_:_:)`` or ``end(_:_:)`` has to follow.
    mutating func admit(_ lookup: borrowing Lookup) -> Int {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(nil) }
        byKey.insert(lookup.tableKey, slot)
        count += 1
        if lookup.isPrefetch { prefetchCount += 1 }
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
    mutating func put(_ lookup: consuming Lookup, _ slot: Int) {
        deadlines.set(lookup.nextDeadline, for: slot)
        restore(consume lookup, slot)
    }

    /// Puts a lookup back that has the same deadlines as before.
    mutating func restore(_ lookup: consuming Lookup, _ slot: Int) {
        var back: Lookup? = consume lookup
        swap(&back, &slots[slot])
    }

    /// Forgets a lookup that was taken out.
    mutating func end(_ lookup: borrowing Lookup, _ slot: Int) {
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

    /// Notes what was sent for an attempt.
    mutating func noteSent(_ bytes: [UInt8], slot: Int, attempt: Int) { slots[slot]?.attempts[attempt].sent = bytes }

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
        restore(consume lookup, slot)
    }

    /// Forgets a client's query. True when it waited.
    mutating func leave(_ client: ClientToken) -> Bool {
        guard let slot = byClient.remove(client.rawValue) else { return false }
        slots[slot]?.waiting.removeAll { $0.client == client }
        return true
    }
}
