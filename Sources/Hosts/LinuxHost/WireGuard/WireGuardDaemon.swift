internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

/// A WireGuard interface that `wg` and `wg-quick` drive: `sluice [-f] IFNAME`. One loop serves the interface, with further threads
/// of the interface's own for its packets, and the control clients.
///
/// ```
///  the interface (packets, link, routes) ─▶ ┌──────────┐ ◀───── control clients (the configuration protocol)
///                                           │ the loop │
///                                           └──────────┘ ◀───── signals, the control socket's file
/// ```
///
/// It ends when it is told to (SIGINT, SIGTERM), when the interface is deleted or when its control socket's file is removed.
public struct WireGuardDaemon: ~Copyable {
    /// What the events of the loop are about besides the interface. Each control client has another of `clients`.
    private enum Token {
        static let listener = TunnelInterface.Token.firstFree
        static let socketFile = listener + 1
        static let signals = listener + 2
        static let clients: Range<UInt64> = 1 << 32..<2 << 32
    }

    private let name: InterfaceName
    private let log: Log
    private var loop: EventLoop
    private let signals: SignalDescriptor
    private var control: ControlServer
    private var interface: TunnelInterface
    private var isRunning = true

    /// Opens everything that the interface needs. When this returns, `wg` can talk to it.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    public init(_ options: WireGuardOptions, log: Log) throws(StartFailure) {
        ignoreBrokenPipes()
        // Everything is opened before any of it is kept: what one failure leaves is closed by its owner. Signals come first: the
        // interface has threads that inherit which are blocked.
        let signals = try StartFailure.wrapping("cannot watch for signals") { () throws(SystemCallError) in
            try SignalDescriptor([.hangUp, .interrupt, .terminate])
        }
        let loop = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try EventLoop()
        }
        var interface = try TunnelInterface(options.interface, log: log)
        let control = ControlServer(
            try Self.openListener(options, through: &interface.channel), listenerToken: Token.listener,
            fileToken: Token.socketFile, clientTokens: Token.clients)
        try StartFailure.wrapping("cannot serve the interface") { () throws(SystemCallError) in
            try interface.start(with: loop)
            try control.register(with: loop)
            try loop.register(signals.descriptor, token: Token.signals, interest: .readable)
        }
        name = options.name
        self.log = log
        self.signals = signals
        self.loop = loop
        self.control = control
        self.interface = interface
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

    /// Runs until the interface's end, then removes what `init` made.
    ///
    /// - Throws: What the loop cannot go on with; what was made is removed then too.
    public consuming func run() throws(SystemCallError) {
        log.verbose("interface \(public: name.string) is ready")
        var events = EventBuffer(capacity: 64)
        CodePages.release()
        do throws(SystemCallError) {
            while isRunning {
                try loop.wait(until: interface.nextDeadline(), into: &events)
                interface.shared.noteAwake()
                for index in 0..<events.count { handle(events[index]) }
                let log = log
                interface.act { Self.report($0, to: log) }
                endOnLoss()
            }
        } catch {
            close()
            throw error
        }
        close()
        log.verbose("interface \(public: name.string) is closed")
    }

    private mutating func handle(_ event: Event) {
        if interface.handle(event, loop) { return }
        switch event.token {
        case Token.listener: control.accept(loop)
        case Token.socketFile: endOnSocketRemoval()
        case Token.signals: endOnSignal()
        default: serve(event.token)
        }
    }

    // MARK: Ends

    private mutating func endOnLoss() {
        switch interface.condition {
        case .present: return
        case .deleted: log.verbose("the interface was deleted")
        case .failed(let error): log.error("the interface failed: \(public: String(describing: error))")
        }
        isRunning = false
    }

    private mutating func endOnSocketRemoval() {
        guard control.isFileRemoved() else { return }
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
        control.removeAll()
        try? interface.channel.removeControlSocket(control.listener.identifier)
        interface.close(loop)
    }

    // MARK: Control clients

    private mutating func serve(_ token: UInt64) {
        guard let client = control.client(token) else { return }
        let isAlive = client.connection.serve(at: HostClock.now(), for: &self)
        control.served(client, token, isAlive: isAlive, loop)
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
    func withDevice<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result {
        interface.withDevice(body)
    }

    mutating func setListenPort(_ port: UInt16) -> Int32? {
        interface.setListenPort(port, loop)?.errorNumber
    }

    mutating func setFirewallMark(_ mark: UInt32) -> Int32? {
        interface.setFirewallMark(mark)?.errorNumber
    }
}
