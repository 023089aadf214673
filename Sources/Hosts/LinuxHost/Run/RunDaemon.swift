internal import Glibc
internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import WireGuard

/// The whole daemon: `sluice run`. It gives a packet tunnel provider what the provider asks for.
///
/// ```
///  configuration, signals ─▶ ┌──────────────┐ events  ┌──────────────────┐
///  names looked up ────────▶ │   the loop   │ ──────▶ │ packet tunnel    │
///  path to the network ────▶ │              │ ◀────── │ provider (core)  │
///  messages of programs ───▶ └──────────────┘ actions └──────────────────┘
///                                │ interface: packets, sockets, WireGuard device     │ privileged side: addresses, routes, …
/// ```
public struct RunDaemon: ~Copyable {
    /// What the events of the loop are about besides the interface.
    enum Token {
        static let signals = TunnelInterface.Token.firstFree
        static let controlListener = signals + 1
        static let controlFile = signals + 2
        static let messageListener = signals + 3
        static let resolution = signals + 4
        static let path = signals + 5
        static let commands = signals + 6
        static let queryNews = signals + 7
        static let controlClients: Range<UInt64> = 1 << 32..<2 << 32
        static let messageClients: Range<UInt64> = 2 << 32..<4 << 32
        static let metrics: Range<UInt64> = 4 << 32..<8 << 32
    }

    let file: String
    /// The name of the interface; nil for sockets only.
    let name: InterfaceName?
    let log: Log
    var configuration: DaemonConfiguration
    var loop: EventLoop
    let signals: SignalDescriptor
    /// Nil once it was closed, and for sockets only.
    var interface: TunnelInterface?
    /// The way to the privileged side for sockets only; an interface has one of its own.
    var channel: InProcessPrivilegedChannel?
    /// Where `wg` asks; nil without an interface.
    var control: ControlServer?
    /// The DNS proxy; nil when the configuration wants none.
    var dns: DNSService?
    /// Where the DNS proxy gets what comes out of the TUN device.
    let queries: QueryInbox
    var messages: AppMessageServer
    /// The programs that wait for the next query.
    var watchers: QueryWatchers
    /// Where what is counted is read.
    var metrics: MetricsServer
    let startedAt = HostClock.wallClock()
    let resolution: NameResolution
    var observer: PathObserver
    var commands = ShellCommands(token: Token.commands)
    var sequence = RunSequence()
    var provider: PacketTunnelProvider
    /// What the provider is to be told as soon as it has told everything itself.
    var pending: [PacketTunnelProvider.Event] = []
    /// The settings that are in force, and how they were put into force.
    var applied: AppliedSettings?
    var appliedManner: SettingsManner?
    /// Who keeps the machine's resolver while it is pointed here.
    var resolverKeeper: ResolverKeeper?
    /// Addresses that wait for their equivalent in a network that has only IPv6, by the look-up for it.
    var remaps: [UInt64: IPAddress] = [:]
    var isDevicePaused = false
    private var sleepDetector = SleepDetector()
    var reportedLoss = false
    var nextRequest: UInt64 = 0
    /// The configurations that are to be taken over, each with the request that it is in; the provider takes one at a time, the
    /// first of them first.
    var candidates: [(id: PacketTunnelProvider.RequestID, configuration: DaemonConfiguration)] = []
    /// True once everything was up: what the device has before is not what the file says.
    var wasUp = false
    var exitStatus: Int32?

    /// Opens the interface and the sockets that the daemon is talked to by. Nothing else of the machine is touched before `run`.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    public init(_ loaded: LoadedConfiguration, log: Log) throws(StartFailure) {
        ignoreBrokenPipes()
        DescriptorLimit.raise()
        let configuration = loaded.value
        let name = configuration.interfaceName
        guard name != nil || configuration.dns != nil else {
            throw StartFailure("\(loaded.file): there is nothing to do: neither a device, nor a tunnel, nor dns")
        }
        // Signals come first: threads inherit which are blocked.
        let signals = try StartFailure.wrapping("cannot watch for signals") { () throws(SystemCallError) in
            try SignalDescriptor([.hangUp, .interrupt, .terminate])
        }
        let loop = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try EventLoop()
        }
        let queries = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try QueryInbox()
        }
        let resolution = try StartFailure.wrapping("cannot look names up") { () throws(SystemCallError) in
            try NameResolution()
        }
        let watchers = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try QueryWatchers()
        }
        var metrics = MetricsServer(tokens: Token.metrics)
        try metrics.listen(at: configuration.metrics.listen, loop)
        // Before what leaves traces on the machine: a port that is taken must not leave a control socket behind.
        let dns = try configuration.proxyConfiguration.map { (dns) throws(StartFailure) in
            try DNSService(dns, configuration.rules, inbox: queries, news: watchers.news, log: log)
        }
        let openings =
            if let name { try RunOpenings(name, configuration, queries, loop, log) } else {
                try RunOpenings(configuration)
            }
        try StartFailure.wrapping("cannot serve") { () throws(SystemCallError) in
            try loop.register(signals.descriptor, token: Token.signals, interest: .readable)
            try loop.register(resolution.wakeUp.descriptor, token: Token.resolution, interest: .readable)
            try loop.register(watchers.news.wakeUp.descriptor, token: Token.queryNews, interest: .readable)
            try openings.messages.register(with: loop)
            try dns?.start()
        }
        do throws(SystemCallError) {
            try openings.observer.netlink.register(with: loop, token: Token.path)
        } catch { throw StartFailure("cannot follow the network: \(error)") }
        file = loaded.file
        self.name = name
        self.log = log
        self.configuration = configuration
        self.signals = signals
        self.loop = loop
        interface = openings.interface
        channel = openings.channel
        control = openings.control
        self.dns = dns
        self.queries = queries
        messages = openings.messages
        self.watchers = watchers
        self.metrics = metrics
        self.resolution = resolution
        observer = openings.observer
        // Revisions of an earlier run are never those of this one.
        provider = PacketTunnelProvider(
            rememberedEndpoints: name.map { EndpointMemory(of: $0).read() } ?? [:],
            revision: HostClock.wallClock().seconds << 20)
        serveTunnel()
    }

    /// Runs until the end. Returns the exit status: 0 when it was asked to end and all went well.
    ///
    /// - Throws: What the loop cannot go on with; what was done to the machine is undone then too.
    public consuming func run() throws(SystemCallError) -> Int32 {
        var events = EventBuffer(capacity: 64)
        do throws(SystemCallError) {
            clearLeftovers()
            perform(sequence.begin())
            // Without commands before it the tunnel starts at once.
            settle()
            while exitStatus == nil {
                try loop.wait(until: nextDeadline(), into: &events)
                interface?.shared.noteAwake()
                noteSleep()
                for index in 0..<events.count { handle(events[index]) }
                handleDeadlines()
                act()
            }
        } catch {
            close()
            throw error
        }
        close()
        return exitStatus ?? 1
    }

    /// Lets the DNS proxy answer what comes out of the TUN device, where there are both.
    mutating func serveTunnel() {
        switch interface {
        case .none: break
        case .some(let interface):
            do throws(SystemCallError) {
                try dns?.serve(interface.duplicateDevice())
            } catch {
                log.error("the DNS proxy cannot answer what comes from the interface: \(public: error.description)")
            }
        }
    }

    // MARK: The loop

    private func nextDeadline() -> Instant? {
        let deadlines = [
            deviceDeadline(), provider.nextDeadline, observer.deadline, watchers.nextDeadline, metrics.nextDeadline,
        ]
        return deadlines.lazy.compactMap(\.self).min()
    }

    private func deviceDeadline() -> Instant? {
        guard !isDevicePaused else { return nil }
        switch interface {
        case .some(let interface): return interface.nextDeadline()
        case .none: return nil
        }
    }

    private mutating func handle(_ event: Event) {
        if interface?.handle(event, loop) ?? false { return }
        switch event.token {
        case Token.signals: readSignals()
        case Token.controlListener:
            control?.accept(loop)
            // Without the interface there is nothing that they could ask about.
            if isInterfaceClosed { control?.removeAll() }
        case Token.controlFile: _ = control?.isFileRemoved()
        case Token.messageListener: messages.accept(loop)
        case Token.resolution: readOutcomes()
        case Token.path: observer.readChanges()
        case Token.commands: commandsWent(commands.handleEnd(loop))
        case Token.queryNews: watchers.noteNews(at: HostClock.now())
        case let token where Token.metrics.contains(token): serveMetrics(event)
        case let token where messages.owns(token): note(messages.serve(token, loop))
        case let token: serveControl(token)
        }
        settle()
    }

    private mutating func handleDeadlines() {
        let now = HostClock.now()
        if observer.isDue(at: now) {
            restoreSettings()
            let path = currentPath()
            dns?.pathChanged(path)
            tell(.pathChanged(path))
        }
        if let deadline = provider.nextDeadline, deadline <= now { perform(provider.handleDeadlines(at: now)) }
        answerWatchers(at: now)
        metrics.handleDeadlines(at: now, loop)
        settle()
    }

    /// Lets the provider know when the machine slept: before anything else, since nothing of what was due then is late.
    private mutating func noteSleep() {
        guard let sleep = sleepDetector.sleep() else { return }
        let now = HostClock.now()
        log.info("the machine slept for \(sleep.nanoseconds / 1_000_000_000) s")
        let began = Instant(nanoseconds: now.nanoseconds - min(now.nanoseconds, sleep.nanoseconds))
        perform(provider.handle(.sleep, at: began))
        perform(provider.handle(.wake, at: now))
        dns?.machineSlept()
    }

    /// Lets the device do what it has to do by itself, and tells the provider of it.
    private mutating func act() {
        guard !isDevicePaused else { return }
        var events: [WireGuard.Event] = []
        interface?.act { events.append($0) }
        for event in events { note(event) }
        noteLoss()
        settle()
    }

    private mutating func serveControl(_ token: UInt64) {
        guard let client = control?.client(token) ?? nil else { return }
        let isAlive = client.connection.serve(at: HostClock.now(), for: &self)
        control?.served(client, token, isAlive: isAlive, loop)
    }

    private mutating func readSignals() {
        while let signal = try? signals.next() {
            switch signal {
            case .hangUp: reload()
            case .interrupt, .terminate:
                if !sequence.isStopping { log.info("asked to end") }
                perform(sequence.stopRequested())
            }
        }
    }

    // MARK: The provider

    /// Tells the provider something, now or when it has said everything that it is saying.
    mutating func tell(_ event: PacketTunnelProvider.Event) {
        pending.append(event)
    }

    /// Lets the provider handle everything that it is to be told, and does what it wants.
    mutating func settle() {
        while !pending.isEmpty {
            let events = pending
            pending.removeAll()
            perform(provider.handle(events, at: HostClock.now()))
        }
    }

    /// Asks the provider for what a configuration says.
    mutating func makeRequest(for configuration: DaemonConfiguration) -> PacketTunnelProvider.Request {
        nextRequest += 1
        let device = configuration.device
        return PacketTunnelProvider.Request(
            id: PacketTunnelProvider.RequestID(rawValue: nextRequest),
            configuration: configuration.tunnel?.quick.tunnel ?? TunnelConfiguration(),
            overrides: DeviceOverrides(
                name: name?.string, addresses: device?.addresses, mtu: device?.mtu,
                includedRoutes: device?.includedRoutes, excludedRoutes: device?.excludedRoutes))
    }

    private mutating func noteLoss() {
        guard !reportedLoss else { return }
        let failure: ProviderFailure
        switch interface {
        case .none: return
        case .some(let interface):
            switch interface.condition {
            case .present: return
            case .deleted: failure = .interfaceRemoved
            case .failed(let error):
                log.error("the interface failed: \(public: String(describing: error))")
                failure = .interfaceFailed
            }
        }
        reportedLoss = true
        tell(.fail(failure))
    }

    private mutating func note(_ event: WireGuard.Event) {
        switch event {
        case .handshakeCompleted(let peer): if let key = key(of: peer) { tell(.handshakeCompleted(key)) }
        case .handshakeGivenUp(let peer): if let key = key(of: peer) { tell(.handshakeGivenUp(key)) }
        case .initiationReplayed(let peer):
            log.error(
                "peer \(peer.rawValue): a handshake came with an old time stamp: a replay, or its clock stepped back")
        case .endpointChanged(let peer):
            guard let key = key(of: peer), let endpoint = withDeviceIfAny({ $0.snapshot(of: key)?.endpoint }) ?? nil
            else { return }
            tell(.endpointChanged(key, endpoint))
            // The way to the new endpoint may be another one.
            observer.expectChange()
        }
    }

    private mutating func key(of peer: PeerIndex) -> PublicKey? {
        withDeviceIfAny { $0.publicKey(of: peer) } ?? nil
    }

    // MARK: The end

    private mutating func close() {
        commands.terminate()
        messages.removeAll()
        metrics.close(loop)
        control?.removeAll()
        closeInterface()
        dns?.stop()
        try? channel?.removeControlSocket(messages.listener.identifier)
    }

    /// Takes back what is left of the settings, and lets go of the interface, which disappears.
    mutating func closeInterface() {
        clearResolver()
        dns?.serve(nil)
        guard var interface = interface.take() else { return }
        for note in (try? interface.channel.clearSettings(of: interface.identifier)) ?? [] {
            log.error("\(public: note.description)")
        }
        if let identifier = controlIdentifier { try? interface.channel.removeControlSocket(identifier) }
        try? interface.channel.removeControlSocket(messages.listener.identifier)
        interface.close(loop)
        control?.removeAll()
    }

    private var controlIdentifier: ControlSocketIdentifier? {
        switch control {
        case .some(let control): control.listener.identifier
        case .none: nil
        }
    }

    private var isInterfaceClosed: Bool {
        switch interface {
        case .some: false
        case .none: true
        }
    }
}
