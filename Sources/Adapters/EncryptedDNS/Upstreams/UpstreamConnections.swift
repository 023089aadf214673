internal import IPPacket
public import Provider

/// Names a connection to a server. No number is used twice.
public struct ConnectionID: Hashable, Sendable {
    /// The number.
    public let rawValue: UInt64
}

/// Which connections there are to one server, and to which of its addresses: what to open and close, and which one a query goes by.
///
/// Addresses come from the configuration or from a resolver that the configuration names, and are tried in their order. One that fails
/// is left alone for a while, which grows with each failure; one that takes long is raced by the next (RFC 8305 §5). Of the open
/// connections, the first one that takes more is used, so that the others become idle. When the last one ends that a query has gone by
/// lately, another takes its place, to be warm for the next query.
///
/// The states of a connection:
///
///     opening ── opened ──▶ open ◀── enough under way ──▶ busy
///        │                   └──────── takes no more ──────┴──▶ draining
///        └── failed, closed, raced or dropped in any state: gone ──┘
public struct UpstreamConnections<Address: Hashable & Sendable>: Sendable {
    /// What the host is to do, in the order of the list.
    public enum Action: Hashable, Sendable {
        /// Connect to an address. Ends with ``opened(_:at:)`` or ``failed(_:isUntrusted:at:)``.
        case open(ConnectionID, Address)
        /// Drop a connection, and give up what is under way on it. No report about it is expected.
        case close(ConnectionID)
        /// Ask the resolver for the addresses. Ends with ``resolved(_:validFor:at:)`` or ``resolutionFailed(at:)``.
        case resolve
    }

    /// Where a query goes.
    public enum Choice: Hashable, Sendable {
        /// By this connection, which may still be opening: it keeps the query until it is open.
        case use(ConnectionID)
        /// Nowhere yet: addresses have to be resolved first. Ask again then.
        case waitForAddresses
        /// Nowhere: no address is to be tried before this time, or nobody knows one.
        case unavailable(until: Instant?)
        /// Nowhere: there are as many connections as there may be, and none takes more.
        case full
    }

    /// How many, and how long.
    public struct Policy: Hashable, Sendable {
        /// The most connections that are opening or open, those counted that only finish what is under way.
        public var connectionCount = 3
        /// How long an address is left alone after its first failure; twice as long after each further one.
        public var shortestBackOff = Interval.seconds(1)
        /// How long at most, and how long when a server there was not to be trusted.
        public var longestBackOff = Interval.seconds(30)
        /// How long the opening of a connection may take before the next address is tried beside it.
        public var raceDelay = Interval.milliseconds(500)
        /// How long after its last query a server is kept a connection for.
        public var warmInterval = Interval.seconds(300)
        /// How long a resolver is left alone that had no answer.
        public var resolutionBackOff = Interval.seconds(5)

        /// The usual policy.
        public init() {}
    }

    private enum State: Sendable {
        case opening(since: Instant, isRaced: Bool)
        case open
        case busy
        case draining
    }

    private struct Connection: Sendable {
        let id: ConnectionID
        let address: Address
        var state: State
        /// True when a query has gone by it.
        var isUsed = false

        var isOpening: Bool {
            if case .opening = state { true } else { false }
        }

        var isOpen: Bool {
            if case .open = state { true } else { false }
        }

        var isDraining: Bool {
            if case .draining = state { true } else { false }
        }
    }

    private struct Candidate: Sendable {
        let address: Address
        var failureCount = 0
        var retryAt: Instant?
    }

    private enum Resolution: Sendable {
        /// The configuration has the addresses.
        case unneeded
        case needed(after: Instant?)
        case underWay
        case valid(until: Instant)
    }

    private let policy: Policy
    private var candidates: [Candidate]
    private var resolution: Resolution
    private var connections: [Connection] = []
    private var lastID: UInt64 = 0
    private var lastUse: Instant?

    /// A server with these addresses; with none, a resolver has to be asked for them.
    public init(addresses: [Address], policy: Policy = Policy()) {
        self.policy = policy
        candidates = Self.candidates(addresses)
        resolution = addresses.isEmpty ? .needed(after: nil) : .unneeded
    }

    private static func candidates(_ addresses: [Address]) -> [Candidate] {
        var all: [Candidate] = []
        for address in addresses where !all.contains(where: { $0.address == address }) {
            all.append(Candidate(address: address))
        }
        return all
    }

    /// The connections that are opening, open or draining, the oldest first.
    public var connectionIDs: [ConnectionID] { connections.map(\.id) }

    /// Chooses where a query goes.
    ///
    /// - Parameters:
    ///   - needsFresh: True when no connection will do that is open already: the query has failed on one.
    ///   - actions: What there is to do first is added.
    @_specialize(where Address == IPAddress)
    public mutating func choose(needsFresh: Bool = false, at now: Instant, actions: inout [Action]) -> Choice {
        lastUse = now
        if let index = connections.firstIndex(where: { $0.isOpen && !needsFresh })
            ?? connections.firstIndex(where: { $0.isOpening })
        {
            connections[index].isUsed = true
            return .use(connections[index].id)
        }
        startResolution(at: now, &actions)
        guard !candidates.isEmpty else {
            switch resolution {
            case .underWay: return .waitForAddresses
            case .needed(let after): return .unavailable(until: after)
            case .unneeded, .valid: return .unavailable(until: nil)
            }
        }
        guard connections.count < policy.connectionCount || makeRoom(&actions) else {
            // With no room for a fresh one, the newest is the best there is.
            guard needsFresh, let newest = connections.lastIndex(where: \.isOpen) else { return .full }
            connections[newest].isUsed = true
            return .use(connections[newest].id)
        }
        guard let id = open(at: now, isUsed: true, &actions) else { return .unavailable(until: nextRetry) }
        return .use(id)
    }

    /// A connection is there: TCP's, and TLS has shaken hands where there is TLS. Those to other addresses that are still opening are
    /// closed.
    public mutating func opened(_ id: ConnectionID, at now: Instant) -> [Action] {
        guard let index = connections.firstIndex(where: { $0.id == id }), connections[index].isOpening else {
            return []
        }
        connections[index].state = .open
        if let candidate = candidates.firstIndex(where: { $0.address == connections[index].address }) {
            candidates[candidate].failureCount = 0
            candidates[candidate].retryAt = nil
        }
        let losers = connections.filter(\.isOpening).map(\.id)
        connections.removeAll { $0.isOpening }
        return losers.map(Action.close)
    }

    /// A connection did not come about. The next address is tried when the server was used lately.
    public mutating func failed(_ id: ConnectionID, isUntrusted: Bool = false, at now: Instant) -> [Action] {
        guard let connection = remove(id) else { return [] }
        backOff(connection.address, isUntrusted, at: now)
        var actions: [Action] = []
        if nextRetry != nil { startResolution(at: now, isStale: true, &actions) }
        keepWarm(at: now, &actions)
        return actions
    }

    /// An open connection takes no more queries, or takes some again.
    ///
    /// - Parameter isBusy: True when it takes no more only because there is enough under way: it is not given up for another.
    public mutating func changed(_ id: ConnectionID, canTakeMore: Bool, isBusy: Bool = false) {
        guard let index = connections.firstIndex(where: { $0.id == id }), !connections[index].isOpening else { return }
        connections[index].state = canTakeMore ? .open : isBusy ? .busy : .draining
    }

    /// An open connection has ended.
    ///
    /// - Parameter isFailure: True when it was found dead, or the other side broke the protocol: its address is left alone for a while
    ///   when there is another one.
    public mutating func closed(_ id: ConnectionID, isFailure: Bool = false, at now: Instant) -> [Action] {
        guard let connection = remove(id) else { return [] }
        if isFailure, candidates.count > 1 { backOff(connection.address, false, at: now) }
        var actions: [Action] = []
        // One that was kept warm for nothing is not replaced, lest a server that closes at once is called without end.
        if connection.isUsed { keepWarm(at: now, &actions) }
        return actions
    }

    /// The resolver's answer.
    ///
    /// - Parameter interval: For how long it holds: its least TTL.
    public mutating func resolved(_ addresses: [Address], validFor interval: Interval, at now: Instant) -> [Action] {
        guard case .underWay = resolution else { return [] }
        guard !addresses.isEmpty else { return resolutionFailed(at: now) }
        let known = candidates
        candidates = Self.candidates(addresses).map { candidate in
            known.first { $0.address == candidate.address } ?? candidate
        }
        // A TTL of 0 does not mean to ask without end.
        resolution = .valid(until: now + max(interval, policy.resolutionBackOff))
        var actions: [Action] = []
        keepWarm(at: now, &actions)
        return actions
    }

    /// The resolver had no answer. Addresses that are known stay in use.
    public mutating func resolutionFailed(at now: Instant) -> [Action] {
        guard case .underWay = resolution else { return [] }
        resolution = .needed(after: now + policy.resolutionBackOff)
        return []
    }

    /// The network is another one: nothing that was known about it holds.
    public mutating func pathChanged(at now: Instant) -> [Action] {
        var actions = connections.map { Action.close($0.id) }
        connections = []
        for index in candidates.indices {
            candidates[index].failureCount = 0
            candidates[index].retryAt = nil
        }
        switch resolution {
        case .unneeded: break
        // An answer that is under way may be the other network's; it is taken for want of a better one, and does not last.
        case .underWay: break
        case .needed, .valid: resolution = .needed(after: nil)
        }
        if isWarm(at: now) { startResolution(at: now, &actions) }
        keepWarm(at: now, &actions)
        return actions
    }

    /// When ``handleDeadlines(at:)`` is to be called; nil when there is no need to.
    public var nextDeadline: Instant? {
        connections.lazy.compactMap { connection in
            guard case .opening(let since, isRaced: false) = connection.state else { return nil }
            return since + policy.raceDelay
        }.min()
    }

    /// Lets the next address race a connection that takes long.
    public mutating func handleDeadlines(at now: Instant) -> [Action] {
        var actions: [Action] = []
        for index in connections.indices {
            guard case .opening(let since, isRaced: false) = connections[index].state, since + policy.raceDelay <= now
            else { continue }
            connections[index].state = .opening(since: since, isRaced: true)
            if connections.count < policy.connectionCount { _ = open(at: now, &actions) }
        }
        return actions
    }

    /// Opens a connection to the first address that is not to be left alone and has none opening.
    private mutating func open(
        at now: Instant, isUsed: Bool = false, _ actions: inout [Action]
    ) -> ConnectionID? {
        let candidate = candidates.first { candidate in
            (candidate.retryAt ?? now) <= now
                && !connections.contains { $0.isOpening && $0.address == candidate.address }
        }
        guard let candidate else { return nil }
        lastID += 1
        let id = ConnectionID(rawValue: lastID)
        connections.append(
            Connection(id: id, address: candidate.address, state: .opening(since: now, isRaced: false), isUsed: isUsed))
        actions.append(.open(id, candidate.address))
        return id
    }

    private mutating func remove(_ id: ConnectionID) -> Connection? {
        guard let index = connections.firstIndex(where: { $0.id == id }) else { return nil }
        return connections.remove(at: index)
    }

    /// Gives up the oldest connection that takes no more: what is under way on it has been asked again elsewhere, or will be.
    private mutating func makeRoom(_ actions: inout [Action]) -> Bool {
        guard let oldest = connections.first(where: { $0.isDraining }) else { return false }
        _ = remove(oldest.id)
        actions.append(.close(oldest.id))
        return true
    }

    private mutating func backOff(_ address: Address, _ isUntrusted: Bool, at now: Instant) {
        guard let index = candidates.firstIndex(where: { $0.address == address }) else { return }
        let doublings = min(candidates[index].failureCount, 16)
        let interval = Interval(nanoseconds: policy.shortestBackOff.nanoseconds << UInt64(doublings))
        candidates[index].failureCount += 1
        candidates[index].retryAt = now + (isUntrusted ? policy.longestBackOff : min(interval, policy.longestBackOff))
    }

    /// When the first of the addresses can be tried; nil when one can be tried now.
    private var nextRetry: Instant? {
        var first: Instant?
        for candidate in candidates {
            guard let retryAt = candidate.retryAt else { return nil }
            first = min(first ?? retryAt, retryAt)
        }
        return first
    }

    private func isWarm(at now: Instant) -> Bool {
        guard let lastUse else { return false }
        return now.since(lastUse) < policy.warmInterval
    }

    /// Opens a connection when there is none and the server was used lately.
    private mutating func keepWarm(at now: Instant, _ actions: inout [Action]) {
        guard isWarm(at: now), !connections.contains(where: { !$0.isDraining }),
            connections.count < policy.connectionCount
        else { return }
        // Without this, a server that ends each connection soon would never be looked for elsewhere.
        startResolution(at: now, &actions)
        _ = open(at: now, &actions)
    }

    /// Asks the resolver when addresses are missing, too old, or `isStale` because none of them works.
    private mutating func startResolution(at now: Instant, isStale: Bool = false, _ actions: inout [Action]) {
        switch resolution {
        case .unneeded, .underWay: return
        case .needed(let after): guard (after ?? now) <= now else { return }
        case .valid(let until): guard isStale || until <= now else { return }
        }
        resolution = .underWay
        actions.append(.resolve)
    }
}
