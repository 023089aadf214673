public import Provider
public import WireGuard

/// The packet tunnel provider without its input and output: events and the time go in, actions come out. It decides what is done
/// when; the host, which has the sockets, the interface and the WireGuard device, does it and says what came of it.
///
/// ```
///                     start                    settings applied
///   disconnected ──────────────▶ connecting ─────────────────────▶ connected
///        ▲                           │ looks up names                 │  ▲
///        │                           │ opens sockets                  │  │ path lost for 12 s: suspended, reasserting
///        │                           │ applies settings               │  │ path back: names looked up, resumed
///        │                           │                                └──┘
///        │        settings cleared   ▼ failed, stop                   │ stop, failed
///        └─────────────────────── disconnecting ◀─────────────────────┘
/// ```
///
/// - A start completes when the settings are in place; a tunnel whose peers are silent by configuration sends nothing until there
///   is traffic. How far the handshakes are is told in the status.
/// - A start during disconnecting waits for its end. A stop ends everything that is under way, whatever it waits for.
/// - A reload in connected changes what is different and touches nothing else. It succeeds whole or changes nothing.
/// - A path that comes back within 12 s is followed and nothing is looked up; the addresses of live peers stay. Names are looked
///   up by a start, for new peers of a reload, and after a suspension, when all of them have to be found or none is changed.
/// - While the machine sleeps there is no deadline. Waking, what became due is done once.
public struct PacketTunnelProvider: Sendable {
    /// How far the tunnel is, with what that stage has under way.
    enum Phase: Sendable {
        case disconnected
        case connecting(Startup)
        case connected(Connection)
        case disconnecting(Teardown)
    }

    /// What the status shows besides the peers; when it changes, who waits for a change is answered.
    struct Summary: Equatable, Sendable {
        var status: VPNStatus
        var reason: StatusReason?
        var isAsleep: Bool
        var memoryLevel: MemoryLevel
        var settings: PacketTunnelNetworkSettings?
    }

    let timings: TunnelTimings
    var phase = Phase.disconnected
    /// The peers of the tunnel that is up or coming up.
    var peers = PeerTable()
    var settings = SettingsTransaction()
    /// Why the tunnel is down; nil before the first start.
    var lastEnd: StatusReason?
    /// A start that waits for the end of the tunnel before.
    var queuedStart: Request?
    /// A reload that waits for its turn.
    var queuedReload: Request?
    /// The way to the network; nil until the host told.
    var path: NetworkPath?
    /// The last path that could be used.
    var lastUsablePath: NetworkPath?
    /// Addresses that are being translated for a network that has only IPv6.
    var remaps: [Remap] = []
    /// When the machine fell asleep; nil while it is awake.
    var sleptAt: Instant?
    /// What the host was last told of ``Action/setReasserting(_:)``.
    var isReasserting = false
    var memory: MemoryBudget?

    private var longPolls: LongPolls
    private var published: Summary
    private var lastOperation: UInt64 = 0
    private var actions: [Action] = []

    /// A provider whose tunnel is down.
    ///
    /// - Parameters:
    ///   - rememberedEndpoints: Where names led to in earlier runs.
    ///   - memoryLimit: The bytes that the process may use; nil when there is no limit.
    ///   - revision: The first revision of the status.
    ///   - timings: How long to wait for what.
    public init(
        rememberedEndpoints: [EndpointName: Endpoint] = [:], memoryLimit: UInt64? = nil, revision: UInt64 = 1,
        timings: TunnelTimings = TunnelTimings()
    ) {
        self.timings = timings
        self.peers.remembered = rememberedEndpoints
        memory = memoryLimit.map { MemoryBudget(limit: $0) }
        longPolls = LongPolls(revision: revision)
        published = Summary(status: .disconnected, reason: nil, isAsleep: false, memoryLevel: .normal, settings: nil)
    }

    /// Where the names of peers led to when they were last reached: to be given to a later run, which falls back on them.
    public var rememberedEndpoints: [EndpointName: Endpoint] { peers.remembered }

    /// How far the tunnel is.
    public var status: VPNStatus {
        switch phase {
        case .disconnected: .disconnected
        case .connecting: .connecting
        case .connected: isReasserting ? .reasserting : .connected
        case .disconnecting: .disconnecting
        }
    }

    /// When ``handleDeadlines(at:)`` has to be called if nothing happens before; nil for never. It is never a time that was
    /// handled. Reading it costs nothing: a host may, after each packet.
    public private(set) var nextDeadline: Instant?

    /// True while the machine sleeps.
    var isAsleep: Bool { sleptAt != nil }

    // MARK: Input

    /// Takes an event. Returns what the host is to do, in order.
    public mutating func handle(_ event: Event, at now: Instant) -> [Action] {
        handle(CollectionOfOne(event), at: now)
    }

    /// Takes events that came in together, in order. A stop among them discards those before it that did not take effect yet:
    /// requests are answered, and nothing else comes of them.
    public mutating func handle(_ events: some Collection<Event>, at now: Instant) -> [Action] {
        if !isAsleep { expireDeadlines(at: now) }
        publish()
        var stops = events.compactMap(\.stopReason)[...]
        for event in events {
            if event.stopReason != nil {
                stops.removeFirst()
                process(event, at: now)
            } else if let reason = stops.first {
                discard(event, becauseOf: reason, at: now)
            } else {
                process(event, at: now)
            }
            publish()
        }
        return takeActions()
    }

    /// Does what is due. Returns what the host is to do, in order.
    public mutating func handleDeadlines(at now: Instant) -> [Action] {
        guard !isAsleep else { return [] }
        expireDeadlines(at: now)
        publish()
        return takeActions()
    }

    private mutating func process(_ event: Event, at now: Instant) {
        switch event {
        case .start(let request): start(request, at: now)
        case .stop(let reason): stop(reason, at: now)
        case .fail(let failure): fail(failure, at: now)
        case .reload(let request): reload(request, at: now)
        case .sleep: sleep(at: now)
        case .wake: wake(at: now)
        case .pathChanged(let path): follow(path, at: now)
        case .resolved(let id, let result): resolved(id, result, at: now)
        case .remapped(let id, let address): remapped(id, address, at: now)
        case .socketsOpened(let id, let failure): socketsOpened(id, failure, at: now)
        case .settingsApplied(let id, let error):
            settled(settings.answer(id, error, next: (nextOperation(), now + timings.settings)), at: now)
        case .handshakeCompleted(let key): peers.handshakeCompleted(key, at: now)
        case .handshakeGivenUp(let key): peers.handshakeGivenUp(key)
        case .endpointChanged(let key, let endpoint): peers.endpointChanged(key, endpoint)
        case .appMessage(let id, let message): answer(id, message, at: now)
        case .appLeft(let id): longPolls.leave(id)
        case .memoryUsed(let bytes): memoryUsed(bytes)
        }
    }

    /// Answers what a later stop makes void.
    private mutating func discard(_ event: Event, becauseOf reason: ProviderStopReason, at now: Instant) {
        switch event {
        case .start(let request): emit(.completeStart(request.id, .stopped(reason)))
        case .reload(let request): emit(.completeReload(request.id, .failure(.stopped(reason))))
        case .sleep, .wake, .appMessage, .appLeft, .memoryUsed: process(event, at: now)
        case .pathChanged(let path): note(path)
        case .settingsApplied:
            // What an earlier stop waits for is over, whoever else asks for one.
            guard case .disconnecting = phase else { break }
            cancelQueuedStart(becauseOf: reason)
            process(event, at: now)
        case .stop, .fail, .resolved, .remapped, .socketsOpened, .handshakeCompleted, .handshakeGivenUp,
            .endpointChanged:
            break
        }
    }

    /// Does everything that is due. Each deadline is gone or moved ahead by it.
    mutating func expireDeadlines(at now: Instant) {
        for id in longPolls.expire(at: now) { emit(.reply(id, .status(currentStatus))) }
        settled(settings.expire(at: now, next: (nextOperation(), now + timings.settings)), at: now)
        expireRemaps(at: now)
        switch phase {
        case .connecting(let startup): expire(startup, at: now)
        case .connected(let connection): expire(connection, at: now)
        case .disconnected, .disconnecting: break
        }
    }

    // MARK: Output

    mutating func emit(_ action: Action) {
        actions.append(action)
    }

    mutating func log(_ level: LogLevel, _ message: LogMessage) {
        actions.append(.log(level, message))
    }

    /// The number of a new operation.
    mutating func nextOperation() -> OperationID {
        lastOperation += 1
        return OperationID(rawValue: lastOperation)
    }

    private mutating func takeActions() -> [Action] {
        nextDeadline = isAsleep ? nil : earliestDeadline
        let taken = actions
        actions = []
        return taken
    }

    private var earliestDeadline: Instant? {
        var earliest = phase.deadline
        func consider(_ deadline: Instant?) {
            guard let deadline else { return }
            earliest = earliest.map { min($0, deadline) } ?? deadline
        }
        consider(longPolls.nextDeadline)
        consider(settings.deadline)
        for remap in remaps { consider(remap.deadline) }
        return earliest
    }

    // MARK: Status

    /// Answers who waits for a change if there was one.
    mutating func publish() {
        let summary = summary
        let peersChanged = peers.takeChange()
        guard peersChanged || summary != published else { return }
        if summary.status != published.status { log(.info, "the tunnel is \(summary.status)") }
        published = summary
        let waiting = longPolls.changed()
        guard !waiting.isEmpty else { return }
        let status = currentStatus
        for id in waiting { emit(.reply(id, .status(status))) }
    }

    private mutating func answer(_ id: AppMessageID, _ message: AppMessage, at now: Instant) {
        switch message {
        case .status(let known, let timeLimit):
            switch longPolls.ask(id, after: known, timeLimit: timeLimit, at: now) {
            case .reply: emit(.reply(id, .status(currentStatus)))
            case .held: break
            case .refuse: emit(.reply(id, .tooManyAskers))
            }
        }
    }

    private mutating func memoryUsed(_ bytes: UInt64) {
        guard let level = memory?.report(used: bytes) else { return }
        log(level > .normal ? .error : .info, "memory: \(level), \(bytes) bytes in use")
        emit(.shed(level.shedding))
    }

    private var summary: Summary {
        Summary(
            status: status, reason: reason, isAsleep: isAsleep, memoryLevel: memory?.level ?? .normal,
            settings: settings.inEffect)
    }

    private var reason: StatusReason? {
        switch phase {
        case .disconnected: lastEnd
        case .connecting(let startup): startup.reason
        case .connected(let connection): connection.reason
        case .disconnecting: .applyingSettings
        }
    }

    /// The status as it is now.
    public var currentStatus: TunnelStatus {
        var name: String?
        switch phase {
        case .connecting(let startup): name = startup.target.overrides.name
        case .connected(let connection): name = connection.target.overrides.name
        case .disconnected, .disconnecting: break
        }
        let summary = summary
        return TunnelStatus(
            revision: longPolls.revision, status: summary.status, reason: summary.reason, isAsleep: summary.isAsleep,
            memoryLevel: summary.memoryLevel, interfaceName: name, settings: summary.settings, listenPort: nil,
            peers: peers.statuses)
    }
}

extension PacketTunnelProvider.Event {
    /// Why to stop; nil for any other event.
    fileprivate var stopReason: ProviderStopReason? {
        if case .stop(let reason) = self { reason } else { nil }
    }
}

extension PacketTunnelProvider.Phase {
    /// When what a stage has under way is due; nil when nothing is.
    fileprivate var deadline: Instant? {
        switch self {
        case .connecting(let startup): startup.deadline
        case .connected(let connection): connection.deadline
        case .disconnected, .disconnecting: nil
        }
    }
}
