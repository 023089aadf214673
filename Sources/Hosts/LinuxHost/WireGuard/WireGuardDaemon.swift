internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

/// A WireGuard interface that `wg` and `wg-quick` drive: `sluice [-f] IFNAME`. One thread, one loop.
///
/// ```
///  TUN ─────▶ ┌──────────┐ ◀───── UDP sockets
///             │ the loop │ ◀───── control clients (the configuration protocol)
///  netlink ─▶ └──────────┘ ◀───── signals, the control socket's file
/// ```
///
/// It ends when it is told to (SIGINT, SIGTERM), when the interface is deleted or when its control socket's file is removed.
public struct WireGuardDaemon: ~Copyable {
    /// What the events of the loop are about. Control clients count up from `firstClient`.
    private enum Token {
        static let tun: UInt64 = 0
        static let socketV4: UInt64 = 1
        static let socketV6: UInt64 = 2
        static let listener: UInt64 = 3
        static let socketFile: UInt64 = 4
        static let signals: UInt64 = 5
        static let linkNotices: UInt64 = 6
        static let homeNetlink: UInt64 = 7
        static let firstClient: UInt64 = 16
    }

    /// How many control clients may be connected at once. More wait until one leaves.
    private static let maximumClients = 64
    /// How long after a change of routes paths are looked at again: once the changes that come together are there, and some
    /// more times, since what a peer had under way to our old address brings that back until the peer hears from the new.
    private static let reviewDelays: [Interval] = [.milliseconds(20), .milliseconds(200), .seconds(1), .seconds(3)]

    private let name: InterfaceName
    private let log: Log
    private var channel: InProcessPrivilegedChannel
    private var loop: EventLoop
    private let signals: SignalDescriptor
    private let listener: UNIXListener
    private var link: LinkFollower
    private let home: NetlinkConnection
    private let offloads: Offloads
    private let shared: SharedDevice
    private var path: PacketPath
    private var clients: [UInt64: ControlClient] = [:]
    private var nextClientToken = Token.firstClient
    private var isAccepting = true
    /// When to look again whether the cached sources are still right.
    private var reviewDeadline: Instant?
    /// How many times it was looked since the last change.
    private var reviewCount = 0
    private var isRunning = true

    /// Opens everything that the interface needs. When this returns, `wg` can talk to it.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    public init(_ options: WireGuardOptions, log: Log) throws(StartFailure) {
        ignoreBrokenPipes()
        // Everything is opened before any of it is kept: what one failure leaves is closed by its owner.
        let signals = try StartFailure.wrapping("cannot watch for signals") { () throws(SystemCallError) in
            try SignalDescriptor([.hangUp, .interrupt, .terminate])
        }
        let loop = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try EventLoop()
        }
        let cryptography = try StartFailure.wrapping("libcrypto lacks what WireGuard needs") {
            () throws(OpenSSLError) in try OpenSSLCryptography()
        }
        let pathCryptography = try StartFailure.wrapping("libcrypto lacks what WireGuard needs") {
            () throws(OpenSSLError) in try OpenSSLCryptography()
        }
        var channel = InProcessPrivilegedChannel(PrivilegedService())
        let tun = try Self.openTUN(options, through: &channel)
        let listener = try Self.openListener(options, through: &channel)
        let link = try Self.followLink(of: tun, named: options.name, through: &channel)
        let home = try StartFailure.wrapping("cannot follow changes of routes") { () throws(PrivilegedFailure) in
            try channel.openNetlink()
        }
        name = options.name
        self.log = log
        self.signals = signals
        self.loop = loop
        self.channel = channel
        self.listener = listener
        self.link = link
        self.home = home
        offloads = options.offloads
        shared = SharedDevice(Device(cryptography: cryptography, entropy: SystemRandomNumberGenerator()))
        path = PacketPath(tun: tun, shared: shared, cryptography: pathCryptography, offloads: options.offloads)
        applyLinkState()
    }

    private static func openTUN(
        _ options: WireGuardOptions, through channel: inout InProcessPrivilegedChannel
    ) throws(StartFailure) -> TUNDevice {
        try StartFailure.wrapping("cannot create the interface \(options.name)") { () throws(PrivilegedFailure) in
            if let descriptor = options.tunDescriptor {
                return try channel.adoptTUN(descriptor: descriptor, wantsOffloads: options.offloads.tun)
            }
            return try channel.openTUN(
                named: options.name, maximumTransmissionUnit: 1_420,
                options: options.offloads.tun ? .superPackets : .plain)
        }
    }

    private static func openListener(
        _ options: WireGuardOptions, through channel: inout InProcessPrivilegedChannel
    ) throws(StartFailure) -> UNIXListener {
        try StartFailure.wrapping("cannot listen on the control socket of \(options.name)") {
            () throws(PrivilegedFailure) in
            if let descriptor = options.controlDescriptor {
                return try channel.adoptControlSocket(descriptor: descriptor)
            }
            return try channel.openControlSocket(for: options.name)
        }
    }

    private static func followLink(
        of tun: borrowing TUNDevice, named name: InterfaceName, through channel: inout InProcessPrivilegedChannel
    ) throws(StartFailure) -> LinkFollower {
        let link: LinkFollower
        do {
            link = try LinkFollower(tun, name: name, through: &channel)
        } catch {
            throw StartFailure("cannot follow the interface: \(error)")
        }
        guard !link.state.hasPacketInformation else {
            throw StartFailure("WG_TUN_FD: the device has packet information; open it with IFF_NO_PI")
        }
        return link
    }

    private func watchEverything() throws(SystemCallError) {
        try loop.register(path.tun.descriptor, token: Token.tun, interest: .readable)
        try loop.register(listener.descriptor, token: Token.listener, interest: .readable)
        try loop.register(listener.watch.descriptor, token: Token.socketFile, interest: .readable)
        try loop.register(signals.descriptor, token: Token.signals, interest: .readable)
        try link.notices.register(with: loop, token: Token.linkNotices)
        try home.register(with: loop, token: Token.homeNetlink)
    }

    /// Runs until the interface's end, then removes what `init` made.
    ///
    /// - Throws: What the loop cannot go on with; what was made is removed then too.
    public consuming func run() throws(SystemCallError) {
        log.verbose("interface \(public: name.string) is ready")
        var events = EventBuffer(capacity: 64)
        do throws(SystemCallError) {
            try watchEverything()
            while isRunning {
                try loop.wait(until: nextDeadline(), into: &events)
                for index in 0..<events.count { handle(events[index]) }
                review()
                let log = log
                path.act { Self.report($0, to: log) }
            }
        } catch {
            close()
            throw error
        }
        close()
        log.verbose("interface \(public: name.string) is closed")
    }

    private mutating func nextDeadline() -> Instant? {
        shared.lock()
        defer { shared.unlock() }
        if shared.device.hasWork { return HostClock.now() }
        guard let deadline = shared.device.nextDeadline() else { return reviewDeadline }
        return reviewDeadline.map { min($0, deadline) } ?? deadline
    }

    private mutating func handle(_ event: Event) {
        switch event.token {
        case Token.tun: endOnDeletion { (path) throws(TUNError) in try path.readTUN() }
        case Token.socketV4: endOnDeletion { (path) throws(TUNError) in try path.readSocket(.v4) }
        case Token.socketV6: endOnDeletion { (path) throws(TUNError) in try path.readSocket(.v6) }
        case Token.listener: accept()
        case Token.socketFile: endOnSocketRemoval()
        case Token.signals: endOnSignal()
        case Token.linkNotices: followLink()
        case Token.homeNetlink: readHomeChanges()
        default: serve(event.token)
        }
    }

    // MARK: Ends

    /// Moves packets, and ends when the interface turns out to be deleted.
    private mutating func endOnDeletion(_ move: (inout PacketPath) throws(TUNError) -> Void) {
        do {
            try move(&path)
        } catch .deviceDeleted {
            log.verbose("the interface was deleted")
            isRunning = false
        } catch {
            log.error("the interface failed: \(public: String(describing: error))")
            isRunning = false
        }
    }

    private mutating func endOnSocketRemoval() {
        guard (try? listener.watch.isFileRemoved()) ?? true else { return }
        log.verbose("the control socket's file was removed")
        isRunning = false
    }

    private mutating func endOnSignal() {
        while let signal = try? signals.next() {
            // A terminal that goes away is no reason to end.
            if signal != .hangUp { isRunning = false }
        }
    }

    private mutating func close() {
        clients.removeAll()
        try? channel.removeControlSocket(listener.identifier)
        closeSockets()
        try? channel.closeTUN(path.tun.identifier)
    }

    // MARK: The link and the routes

    private mutating func followLink() {
        guard link.readNotices() else { return }
        link.refresh(path.tun, through: &channel)
        applyLinkState()
    }

    private mutating func applyLinkState() {
        let isUp = link.state.isUp
        let wasUp = withDevice { device in
            device.mtu = link.state.maximumTransmissionUnit
            return device.isUp
        }
        guard isUp != wasUp else { return }
        if isUp {
            if let error = openSockets(port: withDevice { $0.listenPort }) {
                log.error("cannot open the UDP sockets: \(public: error.description)")
            }
        } else {
            closeSockets()
        }
        withDevice { $0.setLink(up: isUp, at: HostClock.now()) }
        log.verbose("the link is \(public: isUp ? "up" : "down")")
    }

    private mutating func readHomeChanges() {
        var isRelevant = false
        do {
            try home.readChanges { _ in isRelevant = true }
        } catch {
            isRelevant = true
        }
        if isRelevant, reviewDeadline == nil || reviewCount > 0 {
            reviewCount = 0
            reviewDeadline = HostClock.now() + Self.reviewDelays[0]
        }
    }

    /// Forgets our end of the way to those peers for which the kernel would choose another interface now.
    private mutating func review() {
        guard let deadline = reviewDeadline, deadline <= HostClock.now() else { return }
        reviewCount += 1
        reviewDeadline =
            reviewCount < Self.reviewDelays.count ? HostClock.now() + Self.reviewDelays[reviewCount] : nil
        shared.lock()
        defer { shared.unlock() }
        let mark = shared.device.firewallMark
        shared.device.reviewSources { path in
            guard let source = path.source else { return true }
            let route = try? home.route(
                to: path.remote.address, from: source.address, mark: mark, interface: path.remote.scope)
            return route?.interfaceIndex == source.interfaceIndex
        }
    }

    // MARK: The sockets

    /// Opens sockets in place of those there are; these stay when it fails.
    private mutating func openSockets(port: UInt16) -> PrivilegedFailure? {
        do {
            let opened = try channel.openUDPSockets(
                port: port, mark: withDevice { $0.firewallMark }, wantsTrains: offloads.udpGRO)
            closeSockets()
            register(opened)
            withDevice { device in
                device.listenPort = opened.port
                device.reviewSources { _ in false }
            }
            _ = path.exchangeSockets(opened)
            return nil
        } catch {
            return error
        }
    }

    private func register(_ sockets: borrowing UDPSocketPair) {
        for (family, token) in [(AddressFamily.v4, Token.socketV4), (.v6, Token.socketV6)] {
            do {
                try sockets.register(family, with: loop, token: token)
            } catch {
                log.error("cannot watch a UDP socket: \(public: error.description)")
            }
        }
    }

    private mutating func closeSockets() {
        let old = path.exchangeSockets(nil)
        switch consume old {
        case .none: return
        case .some(let sockets):
            sockets.unregister(from: loop)
            try? channel.closeUDPSockets(sockets.identifiers)
        }
    }

    // MARK: Control clients

    private mutating func accept() {
        while clients.count < Self.maximumClients {
            guard let descriptor = try? listener.accept() else { return }
            let client = ControlClient(ControlConnection(adopting: descriptor))
            let token = nextClientToken
            nextClientToken += 1
            guard (try? client.connection.register(with: loop, token: token)) != nil else { continue }
            clients[token] = client
        }
        setAccepting(false)
    }

    private mutating func setAccepting(_ accepts: Bool) {
        guard accepts != isAccepting else { return }
        isAccepting = accepts
        try? loop.modify(listener.descriptor, token: Token.listener, interest: accepts ? .readable : [])
    }

    private mutating func serve(_ token: UInt64) {
        guard let client = clients[token] else { return }
        let isAlive = client.connection.serve(at: HostClock.now(), for: &self)
        if isAlive, (try? client.connection.update(loop, token: token)) != nil { return }
        client.connection.unregister(from: loop)
        clients[token] = nil
        setAccepting(true)
    }

    // MARK: Events

    private static func report(_ event: WireGuard.Event, to log: Log) {
        switch event {
        case .handshakeCompleted(let peer): log.verbose("peer \(peer.rawValue): handshake completed")
        case .handshakeGivenUp(let peer):
            log.verbose("peer \(peer.rawValue): no answer after 20 handshakes, giving up")
        case .initiationReplayed(let peer):
            log.error(
                "peer \(peer.rawValue): a handshake came with an old time stamp: a replay, or its clock stepped back"
            )
        case .endpointChanged(let peer): log.verbose("peer \(peer.rawValue): heard from at a new endpoint")
        }
    }
}

extension WireGuardDaemon: ControlTarget {
    /// Calls `body` with the device, alone.
    func withDevice<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result {
        shared.lock()
        defer { shared.unlock() }
        return body(&shared.device)
    }

    /// Binds to another port. The same one, or any while the link is down, needs nothing but to be remembered.
    mutating func setListenPort(_ port: UInt16) -> Int32? {
        let hasSockets = path.hasSockets
        let isRemembered = withDevice { device in
            guard !device.isUp || (hasSockets && port != 0 && port == device.listenPort) else { return false }
            device.listenPort = port
            return true
        }
        return isRemembered ? nil : openSockets(port: port)?.errorNumber
    }

    /// Sets the mark on the sockets there are and on those to come.
    mutating func setFirewallMark(_ mark: UInt32) -> Int32? {
        let identifiers = path.socketIdentifiers
        if !identifiers.isEmpty {
            do {
                try channel.setMark(mark, on: identifiers)
            } catch {
                return error.errorNumber
            }
        }
        withDevice { device in
            device.firewallMark = mark
            device.reviewSources { _ in false }
        }
        return nil
    }
}
