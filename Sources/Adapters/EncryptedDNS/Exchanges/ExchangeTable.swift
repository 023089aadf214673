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

    private(set) var entries: [Entry] = []
    /// How often something has come.
    private var heard = 0

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }

    /// Something has come from the server.
    mutating func hear() { heard += 1 }

    func contains(_ id: ExchangeID) -> Bool { entries.contains { $0.id == id } }

    func contains(key: Int32) -> Bool { entries.contains { $0.key == key } }

    mutating func add(
        _ id: ExchangeID, key: Int32, queryID: UInt16, deadline: Instant, patience: Interval, at now: Instant
    ) {
        let patience = min(patience, Interval(nanoseconds: deadline.since(now).nanoseconds / 2))
        entries.append(
            Entry(
                id: id, key: key, queryID: queryID, heardBefore: heard,
                probe: now + Interval(nanoseconds: patience.nanoseconds / 2), overdue: now + patience,
                deadline: deadline))
    }

    mutating func remove(key: Int32) -> Entry? {
        guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
        return entries.remove(at: index)
    }

    mutating func remove(_ id: ExchangeID) -> Entry? {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
        return entries.remove(at: index)
    }

    mutating func removeAll() -> [Entry] {
        let all = entries
        entries = []
        return all
    }

    /// When the next of them has something due.
    var nextDeadline: Instant? { entries.lazy.map(\.next).min() }

    /// The next thing that is due; nil when nothing is.
    mutating func nextDue(at now: Instant) -> Due? {
        var index = 0
        while index < entries.count {
            guard entries[index].next <= now else {
                index += 1
                continue
            }
            let isSilent = entries[index].heardBefore == heard
            if entries[index].deadline <= now { return .expired(entries.remove(at: index), isSilent: isSilent) }
            switch entries[index].stage {
            case .waiting:
                entries[index].stage = .probed
                if isSilent { return .probe }
            case .probed:
                entries[index].stage = .overdue
                if isSilent { return .overdue(entries[index].id) }
            case .overdue:
                index += 1
            }
        }
        return nil
    }
}
