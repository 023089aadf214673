internal import DNSProxy
internal import Provider

/// The exchanges that are under way on a connection, with their deadlines.
///
///     waiting ── nothing heard ──▶ probed ── still nothing ──▶ overdue ── deadline ──▶ expired
///        └────── answered, failed or cancelled in any state: over ───────┘
struct ExchangeTable {
    struct Entry {
        let id: ExchangeID
        /// What the server's answer is known by: an ID, or a stream.
        let key: Int32
        /// The ID that the caller's query had.
        let queryID: UInt16
        /// Counts the exchanges in the order in which they began.
        fileprivate let number: Int
        /// What `heard` was when the query was sent.
        fileprivate let heardBefore: Int
        fileprivate var stage = Stage.waiting
        fileprivate let probe: Instant
        fileprivate let overdue: Instant
        let deadline: Instant

        fileprivate var next: Instant {
            switch stage {
            case .waiting: min(probe, deadline)
            case .probed: min(overdue, deadline)
            case .overdue: deadline
            }
        }
    }

    fileprivate enum Stage {
        case waiting
        case probed
        case overdue
    }

    /// What has to be done because time has passed.
    enum Due {
        /// Nothing came since the query: ask whether the server is there.
        case probe
        /// Nothing came since, either.
        case overdue(ExchangeID)
        /// The deadline has passed, and the exchange is not in the table any more; `isSilent` when nothing at all has come.
        case expired(Entry, isSilent: Bool)
    }

    private var slots: [Entry?] = []
    private var free: [Int] = []
    private var slotsByID = NumberTable()
    private var slotsByKey = NumberTable()
    private var lastNumber = 0
    /// How often something has come.
    private var heard = 0
    /// When something is due next: nothing is before, though it may be later, since what has ended takes its time along.
    private(set) var nextDeadline: Instant?

    var count: Int { slotsByID.count }
    var isEmpty: Bool { count == 0 }

    /// Something has come from the server.
    mutating func hear() { heard += 1 }

    func contains(_ id: ExchangeID) -> Bool { slotsByID[id.rawValue] != nil }

    func contains(key: Int32) -> Bool { slotsByKey[Self.number(of: key)] != nil }

    mutating func add(
        _ id: ExchangeID, key: Int32, queryID: UInt16, deadline: Instant, patience: Interval, at now: Instant
    ) {
        let patience = min(patience, Interval(nanoseconds: deadline.since(now).nanoseconds / 2))
        lastNumber += 1
        let entry = Entry(
            id: id, key: key, queryID: queryID, number: lastNumber, heardBefore: heard,
            probe: now + Interval(nanoseconds: patience.nanoseconds / 2), overdue: now + patience, deadline: deadline)
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(nil) }
        slots[slot] = entry
        slotsByID.set(slot, for: id.rawValue)
        slotsByKey.set(slot, for: Self.number(of: key))
        nextDeadline = min(nextDeadline ?? entry.next, entry.next)
    }

    mutating func remove(key: Int32) -> Entry? {
        guard let slot = slotsByKey[Self.number(of: key)] else { return nil }
        return remove(slot)
    }

    mutating func remove(_ id: ExchangeID) -> Entry? {
        guard let slot = slotsByID[id.rawValue] else { return nil }
        return remove(slot)
    }

    /// Takes all of them out, the oldest first.
    mutating func removeAll() -> [Entry] {
        let all = slots.compactMap(\.self).sorted { $0.number < $1.number }
        for entry in all { _ = remove(entry.id) }
        return all
    }

    /// The next thing that is due; nil when nothing is.
    mutating func nextDue(at now: Instant) -> Due? {
        guard let nextDeadline, nextDeadline <= now else { return nil }
        while let slot = oldestDue(at: now), let entry = slots[slot] {
            let isSilent = entry.heardBefore == heard
            if entry.deadline <= now {
                _ = remove(slot)
                return .expired(entry, isSilent: isSilent)
            }
            switch entry.stage {
            case .waiting:
                slots[slot]?.stage = .probed
                if isSilent { return .probe }
            case .probed:
                slots[slot]?.stage = .overdue
                if isSilent { return .overdue(entry.id) }
            case .overdue: preconditionFailure("only its deadline is left")
            }
        }
        self.nextDeadline = slots.lazy.compactMap { $0?.next }.min()
        return nil
    }

    /// The slot of the oldest exchange for which something is due.
    private func oldestDue(at now: Instant) -> Int? {
        var (found, number) = (Int?.none, Int.max)
        for slot in slots.indices {
            guard let entry = slots[slot], entry.next <= now, entry.number < number else { continue }
            (found, number) = (slot, entry.number)
        }
        return found
    }

    private mutating func remove(_ slot: Int) -> Entry? {
        guard let entry = slots[slot] else { return nil }
        slots[slot] = nil
        free.append(slot)
        slotsByID.remove(entry.id.rawValue)
        slotsByKey.remove(Self.number(of: entry.key))
        if isEmpty { nextDeadline = nil }
        return entry
    }

    private static func number(of key: Int32) -> UInt64 { UInt64(UInt32(bitPattern: key)) }
}
