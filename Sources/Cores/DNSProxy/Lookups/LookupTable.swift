internal import Provider

/// All questions under way.
struct LookupTable: Sendable {
    private var slots: [Lookup?] = []
    private var free: [Int] = []
    private var byKey: [[UInt8]: Int] = [:]
    private var byExchange: [ExchangeID: Int] = [:]
    private var byClient: [ClientToken: Int] = [:]
    private var deadlines = DeadlineHeap()

    /// How many there are.
    var count: Int { byKey.count }
    /// How many queries of clients wait.
    var waitingCount: Int { byClient.count }
    /// When the first has something to do.
    var nextDeadline: Instant? { deadlines.first?.deadline }
    /// The slots that are in use.
    var occupied: [Int] { slots.indices.filter { slots[$0] != nil } }

    /// The slot of the lookup with a key.
    func slot(of key: [UInt8]) -> Int? { byKey[key] }
    /// The slot of the lookup that an exchange belongs to.
    func slot(of exchange: ExchangeID) -> Int? { byExchange[exchange] }
    /// True when a client's query waits.
    func isWaiting(_ client: ClientToken) -> Bool { byClient[client] != nil }
    /// The slot of the first lookup that has something to do.
    func due(at now: Instant) -> Int? {
        guard let first = deadlines.first, first.deadline <= now else { return nil }
        return first.owner
    }

    /// Adds a lookup.
    mutating func insert(_ lookup: Lookup) -> Int {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(nil) }
        byKey[lookup.tableKey] = slot
        put(lookup, slot)
        for waiting in lookup.waiting { byClient[waiting.client] = slot }
        return slot
    }

    /// Lets one more wait.
    mutating func join(_ query: WaitingQuery, _ slot: Int) {
        byClient[query.client] = slot
        slots[slot]?.waiting.append(query)
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
        byKey[lookup.tableKey] = nil
        for attempt in lookup.attempts { byExchange[attempt.id] = nil }
        for waiting in lookup.waiting { byClient[waiting.client] = nil }
        free.append(slot)
    }

    /// Notes which lookup an exchange belongs to.
    mutating func add(_ exchange: ExchangeID, _ slot: Int) { byExchange[exchange] = slot }
    /// An exchange is over.
    mutating func remove(_ exchange: ExchangeID) { byExchange[exchange] = nil }

    /// Reads an attempt, and lets it be changed.
    mutating func withAttempt<Result>(
        _ exchange: ExchangeID, _ body: (borrowing Lookup, inout Attempt) -> Result
    ) -> Result? {
        guard let slot = byExchange[exchange], var lookup = take(slot) else { return nil }
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
        for waiting in lookup.waiting { byClient[waiting.client] = nil }
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
        guard let slot = byClient.removeValue(forKey: client) else { return false }
        slots[slot]?.waiting.removeAll { $0.client == client }
        return true
    }
}
