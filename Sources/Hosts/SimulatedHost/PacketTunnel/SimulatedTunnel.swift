public import IPPacket
public import PacketTunnel
public import Provider
public import WireGuard

/// A packet tunnel provider on a simulated machine: it carries out the provider's actions on the machine's device, and answers
/// for the system as a script says. Its deadlines run on the network's clock.
public final class SimulatedTunnel<Primitives: Cryptography> {
    /// One thing that the provider asked for.
    public struct Entry: Equatable {
        /// When it did.
        public let time: Instant
        /// What it asked for.
        public let action: PacketTunnelProvider.Action
    }

    /// The provider.
    public private(set) var provider: PacketTunnelProvider
    /// The machine.
    public let machine: SimulatedMachine<Primitives>
    /// What the provider asked for, oldest first.
    public private(set) var actions: [Entry] = []
    /// The network settings that the system has in place.
    public private(set) var settings: PacketTunnelNetworkSettings?
    /// How often the sockets were opened or opened anew.
    public private(set) var socketGenerations = 0

    /// Looks names up.
    public var resolver: (EndpointName) -> ScriptedAnswer<Result<[Endpoint], ResolutionFailure>>
    /// Puts settings in place, or not: with nil they are in place when it answers.
    public var system: (PacketTunnelNetworkSettings?) -> ScriptedAnswer<NetworkSettingsError?> = { _ in .now(nil) }
    /// Opens sockets, or not.
    public var socketSystem: (PacketTunnelProvider.SocketOptions) -> ScriptedAnswer<SocketFailure?> = { _ in .now(nil) }
    /// Knows what an address is in a network that has only IPv6.
    public var translator: (IPAddress) -> ScriptedAnswer<IPAddress?> = { _ in .now(nil) }

    private unowned let network: SimulatedNetwork<Primitives>
    private var scheduledDeadline: Instant?
    /// The system puts settings in place one after the other.
    private var systemIsBusyUntil = Instant(nanoseconds: 0)
    /// What came in while the machine slept.
    private var backlog: [PacketTunnelProvider.Event] = []

    /// A provider for a machine of `network`. The machine has no sockets and its device no link until the tunnel is up.
    public init(
        _ provider: PacketTunnelProvider, on machine: SimulatedMachine<Primitives>,
        of network: SimulatedNetwork<Primitives>,
        resolver: @escaping (EndpointName) -> ScriptedAnswer<Result<[Endpoint], ResolutionFailure>> = { _ in .never }
    ) {
        self.provider = provider
        self.machine = machine
        self.network = network
        self.resolver = resolver
        machine.hasSockets = false
        machine.device.setLink(up: false, at: network.clock.now)
        machine.reportHandler = { [unowned self] in report($0) }
    }

    /// Gives the provider an event at the time that it is, and does what it says. While the machine sleeps, events wait.
    public func handle(_ event: PacketTunnelProvider.Event) {
        if machine.isAsleep {
            switch event {
            case .wake, .stop: break
            default: return backlog.append(event)
            }
        }
        perform(provider.handle(event, at: network.clock.now))
        guard !machine.isAsleep, !backlog.isEmpty else { return }
        let waiting = backlog
        backlog.removeAll()
        for event in waiting { handle(event) }
    }

    /// The actions since the first `count`, without log lines.
    public func actions(after count: Int) -> [PacketTunnelProvider.Action] {
        actions.dropFirst(count).map(\.action).filter { if case .log = $0 { false } else { true } }
    }

    // MARK: Inside

    private func report(_ event: WireGuard.Event) {
        guard let key = machine.device.publicKey(of: event.peer) else { return }
        switch event {
        case .handshakeCompleted: handle(.handshakeCompleted(key))
        case .handshakeGivenUp: handle(.handshakeGivenUp(key))
        case .endpointChanged:
            guard let endpoint = machine.device.snapshot(of: key)?.endpoint else { return }
            handle(.endpointChanged(key, endpoint))
        case .initiationReplayed: break
        }
    }

    private func perform(_ list: [PacketTunnelProvider.Action]) {
        let now = network.clock.now
        for action in list {
            actions.append(Entry(time: now, action: action))
            perform(action, at: now)
        }
        scheduleDeadline()
    }

    private func perform(_ action: PacketTunnelProvider.Action, at now: Instant) {
        switch action {
        case .resolve(let name, let id, _):
            answer(resolver(name)) { .resolved(id, $0) }
        case .remap(let address, let id):
            answer(translator(address)) { .remapped(id, $0) }
        case .openSockets(let options, let id):
            openSockets(options, id)
        case .rebindSockets:
            socketGenerations += 1
        case .closeSockets:
            machine.hasSockets = false
        case .apply(let wanted, let id):
            apply(wanted, id)
        case .configure(let changes):
            machine.device.apply(changes, at: now)
        case .sendKeepalives(let keys):
            machine.device.sendKeepalives(to: keys)
        case .initiateHandshakes(let keys):
            machine.device.initiateHandshakes(with: keys)
        case .pauseDevice:
            machine.isAsleep = true
        case .resumeDevice:
            machine.isAsleep = false
        case .cancelResolve, .completeStart, .completeStop, .completeReload, .completeSleep, .cancelTunnel,
            .setReasserting, .reply, .shed, .log:
            break
        }
    }

    private func openSockets(
        _ options: PacketTunnelProvider.SocketOptions, _ id: PacketTunnelProvider.OperationID
    ) {
        let decision = socketSystem(options)
        if case .after(_, nil) = decision {
            machine.hasSockets = true
            socketGenerations += 1
            if options.port != 0 { machine.port = options.port }
        }
        answer(decision) { .socketsOpened(id, $0) }
    }

    private func apply(_ wanted: PacketTunnelNetworkSettings?, _ id: PacketTunnelProvider.OperationID) {
        guard case .after(let delay, let error) = system(wanted) else { return }
        systemIsBusyUntil = max(systemIsBusyUntil, network.clock.now) + delay
        network.schedule(at: systemIsBusyUntil) { [unowned self] _ in
            // The system does it even when nobody waits any more.
            if error == nil { settings = wanted }
            handle(.settingsApplied(id, error))
        }
    }

    private func answer<Value>(
        _ script: ScriptedAnswer<Value>, _ event: @escaping (Value) -> PacketTunnelProvider.Event
    ) {
        guard case .after(let delay, let value) = script else { return }
        network.schedule(at: network.clock.now + delay) { [unowned self] _ in handle(event(value)) }
    }

    private func scheduleDeadline() {
        guard let deadline = provider.nextDeadline, deadline != scheduledDeadline else { return }
        scheduledDeadline = deadline
        network.schedule(at: deadline) { [unowned self] network in
            if scheduledDeadline == deadline { scheduledDeadline = nil }
            if let next = provider.nextDeadline, next <= network.clock.now {
                perform(provider.handleDeadlines(at: network.clock.now))
            } else {
                scheduleDeadline()
            }
        }
    }
}
