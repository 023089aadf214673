internal import Glibc
internal import WireGuard

/// What a daemon opens before it does anything: its interface, when it has one, and the sockets that it is talked to by.
struct RunOpenings: ~Copyable {
    /// The interface; nil for sockets only.
    let interface: TunnelInterface?
    /// The way to the privileged side for sockets only; an interface has one of its own.
    let channel: InProcessPrivilegedChannel?
    /// Where `wg` asks; nil without an interface.
    let control: ControlServer?
    /// Where programs ask.
    let messages: AppMessageServer
    /// What tells of the path to the network.
    let observer: PathObserver

    /// Opens all for an interface, which the loop watches.
    init(
        _ name: InterfaceName, _ configuration: DaemonConfiguration, _ queries: QueryInbox,
        _ loop: borrowing EventLoop, _ log: Log
    ) throws(StartFailure) {
        var interface = try Self.openInterface(name, configuration, queries, log)
        let messages = try Self.openMessageSocket(configuration.controlSocket, &interface.channel)
        let control = try Self.openControlSocket(of: name, &interface.channel)
        let observer = try Self.openObserver(&interface.channel)
        do throws(SystemCallError) {
            try interface.start(with: loop)
            try control.register(with: loop)
        } catch { throw StartFailure("cannot serve the interface: \(error)") }
        self.interface = consume interface
        self.messages = messages
        self.control = consume control
        self.observer = observer
        channel = nil
    }

    /// Opens what there is without an interface. It takes no privileges.
    init(_ configuration: DaemonConfiguration) throws(StartFailure) {
        var channel = InProcessPrivilegedChannel(PrivilegedService())
        let messages = try Self.openMessageSocket(configuration.controlSocket, &channel)
        let observer = try Self.openObserver(&channel)
        self.messages = messages
        self.observer = observer
        self.channel = consume channel
        interface = nil
        control = nil
    }

    private static func openInterface(
        _ name: InterfaceName, _ configuration: DaemonConfiguration, _ queries: QueryInbox, _ log: Log
    ) throws(StartFailure) -> TunnelInterface {
        // A persistent TUN device of the name could be taken over, but not be given back as it was.
        guard unsafe if_nametoindex(name.string) == 0 else {
            throw StartFailure("cannot create the interface \(name): there is one of this name")
        }
        return try TunnelInterface(
            TunnelInterfaceOptions(
                name: name, offloads: configuration.offloads, socketsFollowLink: false, queries: queries), log: log)
    }

    private static func openMessageSocket(
        _ path: String, _ channel: inout InProcessPrivilegedChannel
    ) throws(StartFailure) -> AppMessageServer {
        AppMessageServer(
            try StartFailure.wrapping("cannot listen at \(path)") { () throws(PrivilegedFailure) in
                try channel.openMessageSocket(at: path)
            }, listenerToken: RunDaemon.Token.messageListener, clientTokens: RunDaemon.Token.messageClients)
    }

    private static func openControlSocket(
        of name: InterfaceName, _ channel: inout InProcessPrivilegedChannel
    ) throws(StartFailure) -> ControlServer {
        ControlServer(
            try StartFailure.wrapping("cannot listen on the control socket of \(name)") {
                () throws(PrivilegedFailure) in
                try channel.openControlSocket(for: name)
            }, listenerToken: RunDaemon.Token.controlListener, fileToken: RunDaemon.Token.controlFile,
            clientTokens: RunDaemon.Token.controlClients)
    }

    private static func openObserver(
        _ channel: inout InProcessPrivilegedChannel
    ) throws(StartFailure) -> PathObserver {
        PathObserver(
            try StartFailure.wrapping("cannot follow the network") { () throws(PrivilegedFailure) in
                try channel.openNetlink()
            })
    }
}
