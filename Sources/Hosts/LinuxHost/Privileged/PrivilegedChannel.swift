internal import IPPacket
internal import Provider

/// A reply and the descriptors that travel beside it.
struct PrivilegedExchange: ~Copyable {
    /// The reply.
    let reply: PrivilegedReply
    /// Its descriptors, in the order that the reply says.
    var descriptors: DescriptorList

    /// A reply with descriptors.
    init(_ reply: PrivilegedReply, _ descriptors: consuming DescriptorList = DescriptorList()) {
        self.reply = reply
        self.descriptors = descriptors
    }
}

/// The way to the privileged side: one reply for each request. What goes through it is small, and rare.
protocol PrivilegedChannel: ~Copyable {
    /// Asks, and waits for the reply.
    mutating func exchange(_ request: PrivilegedRequest) throws(PrivilegedFailure) -> PrivilegedExchange
}

/// The way to a service in the same process.
struct InProcessPrivilegedChannel: PrivilegedChannel, ~Copyable {
    private var service: PrivilegedService

    /// A channel to `service`.
    init(_ service: consuming PrivilegedService) {
        self.service = service
    }

    mutating func exchange(_ request: PrivilegedRequest) throws(PrivilegedFailure) -> PrivilegedExchange {
        service.perform(request)
    }
}

extension PrivilegedChannel where Self: ~Copyable {
    /// Creates a TUN device with an MTU in bytes and one queue.
    mutating func openTUN(
        named name: InterfaceName, maximumTransmissionUnit: Int, options: TUNOptions = .plain
    ) throws(PrivilegedFailure) -> TUNDevice {
        precondition(options.queues == 1, "openTUNQueues opens more than one queue")
        var queues = try openTUNQueues(
            named: name, maximumTransmissionUnit: maximumTransmissionUnit, options: options)
        guard let device = queues.takeFirst() else { throw .unexpectedReply }
        return device
    }

    /// Creates a TUN device with an MTU in bytes and as many queues as the options say; a persistent device that was made for one
    /// queue has that one.
    mutating func openTUNQueues(
        named name: InterfaceName, maximumTransmissionUnit: Int, options: TUNOptions
    ) throws(PrivilegedFailure) -> TUNQueues {
        let request = PrivilegedRequest.openTUN(
            name: name, maximumTransmissionUnit: maximumTransmissionUnit, options: options)
        return try queues(from: exchange(request), atMost: options.queues)
    }

    /// Takes over the TUN device that an inherited descriptor stands for.
    mutating func adoptTUN(
        descriptor: Int32, wantsOffloads: Bool = false
    ) throws(PrivilegedFailure) -> TUNDevice {
        var queues = try adoptTUNQueue(descriptor: descriptor, wantsOffloads: wantsOffloads)
        guard let device = queues.takeFirst() else { throw .unexpectedReply }
        return device
    }

    /// Takes over the one queue of a TUN device that an inherited descriptor stands for.
    mutating func adoptTUNQueue(descriptor: Int32, wantsOffloads: Bool) throws(PrivilegedFailure) -> TUNQueues {
        try queues(from: exchange(.adoptTUN(descriptor: descriptor, wantsOffloads: wantsOffloads)), atMost: 1)
    }

    /// Lets the privileged side forget a device that is about to be closed here.
    mutating func closeTUN(_ identifier: DeviceIdentifier) throws(PrivilegedFailure) {
        try done(exchange(.closeTUN(identifier)))
    }

    /// Binds UDP sockets to a port; 0 for any that is free.
    mutating func openUDPSockets(
        port: UInt16, mark: UInt32, wantsTrains: Bool = false
    ) throws(PrivilegedFailure) -> UDPSocketPair {
        var pairs = try openUDPSocketPairs(port: port, mark: mark, wantsTrains: wantsTrains, count: 1)
        guard let pair = pairs.takeFirst() else { throw .unexpectedReply }
        return pair
    }

    /// Binds several pairs of UDP sockets to one port, among which the kernel spreads the senders; 0 for any that is free.
    mutating func openUDPSocketPairs(
        port: UInt16, mark: UInt32, wantsTrains: Bool, count: Int
    ) throws(PrivilegedFailure) -> UDPSocketPairs {
        let request = PrivilegedRequest.openUDPSockets(
            port: port, mark: mark, wantsTrains: wantsTrains, count: count)
        let exchange = try exchange(request)
        switch exchange.reply {
        case .sockets(let identifiers, let port, let receivesTrains):
            guard identifiers.count == count else { throw .unexpectedReply }
            return try UDPSocketPairs(
                adopting: exchange.descriptors, identifiers: identifiers, port: port, receivesTrains: receivesTrains)
        case let reply: throw reply.failure
        }
    }

    /// Changes the firewall mark of live sockets.
    mutating func setMark(_ mark: UInt32, on sockets: [SocketIdentifier]) throws(PrivilegedFailure) {
        try done(exchange(.setMark(sockets, mark: mark)))
    }

    /// Lets the privileged side forget sockets that are about to be closed here.
    mutating func closeUDPSockets(_ identifiers: [SocketIdentifier]) throws(PrivilegedFailure) {
        try done(exchange(.closeUDPSockets(identifiers)))
    }

    /// Listens on the control socket of an interface.
    mutating func openControlSocket(for name: InterfaceName) throws(PrivilegedFailure) -> UNIXListener {
        try listener(from: exchange(.openControlSocket(name)))
    }

    /// Listens for the messages of programs at a path.
    mutating func openMessageSocket(at path: String) throws(PrivilegedFailure) -> UNIXListener {
        try listener(from: exchange(.openMessageSocket(path: path)))
    }

    /// Takes over an inherited control socket.
    mutating func adoptControlSocket(descriptor: Int32) throws(PrivilegedFailure) -> UNIXListener {
        try listener(from: exchange(.adoptControlSocket(descriptor: descriptor)))
    }

    /// Removes the file of a control socket.
    mutating func removeControlSocket(_ identifier: ControlSocketIdentifier) throws(PrivilegedFailure) {
        try done(exchange(.removeControlSocket(identifier)))
    }

    /// Opens netlink in the namespace that a device is in, or at home for nil.
    mutating func openNetlink(
        namespaceOf device: DeviceIdentifier? = nil
    ) throws(PrivilegedFailure) -> NetlinkConnection {
        try netlink(from: exchange(.openNetlink(namespaceOf: device)))
    }

    /// Opens netlink for the changes of links in all namespaces that are known here.
    mutating func openLinkNotices() throws(PrivilegedFailure) -> NetlinkConnection {
        try netlink(from: exchange(.openLinkNotices))
    }

    /// Brings settings of a device into force, in the place of those that are: all of them, or none.
    mutating func applySettings(
        _ settings: PacketTunnelNetworkSettings, routing: RoutingOptions, to device: DeviceIdentifier
    ) throws(PrivilegedFailure) -> AppliedSettings {
        let exchange = try exchange(.applySettings(device, NetworkSettingsMessage(settings), routing: routing))
        switch exchange.reply {
        case .settings(let applied): return applied
        case let reply: throw reply.failure
        }
    }

    /// Adds again what somebody took away of a device's settings, and returns how much was missing.
    mutating func restoreSettings(of device: DeviceIdentifier) throws(PrivilegedFailure) -> Int {
        let exchange = try exchange(.restoreSettings(device))
        switch exchange.reply {
        case .settingsRestored(let count): return count
        case let reply: throw reply.failure
        }
    }

    /// Takes back the settings of a device, and returns what is worth a line in the log.
    mutating func clearSettings(of device: DeviceIdentifier) throws(PrivilegedFailure) -> [SettingsNote] {
        try notes(from: exchange(.clearSettings(device)))
    }

    /// Points the machine's resolver at servers, and returns who keeps it and what is worth a line in the log.
    mutating func setResolver(
        _ servers: [IPAddress], searchDomains: [String], link: InterfaceName?
    ) throws(PrivilegedFailure) -> (keeper: ResolverKeeper, notes: [SettingsNote]) {
        let request = PrivilegedRequest.setResolver(
            servers.map { TextCoded($0) }, searchDomains: searchDomains, link: link)
        let exchange = try exchange(request)
        switch exchange.reply {
        case .resolver(let keeper, let notes): return (keeper, notes)
        case let reply: throw reply.failure
        }
    }

    /// Points the machine's resolver back, and returns what is worth a line in the log.
    mutating func clearResolver() throws(PrivilegedFailure) -> [SettingsNote] {
        try notes(from: exchange(.clearResolver))
    }

    /// Takes back what instances left that died, and returns what is worth a line in the log.
    mutating func clearLeftovers() throws(PrivilegedFailure) -> [SettingsNote] {
        try notes(from: exchange(.clearLeftovers))
    }

    private func notes(from exchange: consuming PrivilegedExchange) throws(PrivilegedFailure) -> [SettingsNote] {
        switch exchange.reply {
        case .settingsCleared(let notes): return notes
        case let reply: throw reply.failure
        }
    }

    private func netlink(from exchange: consuming PrivilegedExchange) throws(PrivilegedFailure) -> NetlinkConnection {
        switch exchange.reply {
        case .netlink(let isHome):
            let changes = try exchange.takeDescriptor()
            let questions = try exchange.takeDescriptor()
            do throws(NetlinkError) {
                return try NetlinkConnection(changes: changes, questions: questions, isHome: isHome)
            } catch {
                throw .unexpectedReply
            }
        case let reply: throw reply.failure
        }
    }

    private func queues(
        from exchange: consuming PrivilegedExchange, atMost count: Int
    ) throws(PrivilegedFailure) -> TUNQueues {
        switch exchange.reply {
        case .device(let identifier, _, let headerLength, let offloads):
            guard (1...count).contains(exchange.descriptors.count), [0, 10, 12].contains(headerLength) else {
                throw .unexpectedReply
            }
            return TUNQueues(
                adopting: exchange.descriptors, identifier: identifier, headerLength: headerLength,
                offloads: offloads)
        case let reply: throw reply.failure
        }
    }

    private func listener(from exchange: consuming PrivilegedExchange) throws(PrivilegedFailure) -> UNIXListener {
        switch exchange.reply {
        case .controlSocket(let identifier, let folder, let file):
            let listener = try exchange.takeDescriptor()
            let watch = try exchange.takeDescriptor()
            return UNIXListener(
                adopting: listener, identifier: identifier,
                watch: SocketFileWatch(adopting: watch, folder: folder, file: file))
        case let reply: throw reply.failure
        }
    }

    private func done(_ exchange: consuming PrivilegedExchange) throws(PrivilegedFailure) {
        guard case .done = exchange.reply else { throw exchange.reply.failure }
    }
}

extension PrivilegedExchange {
    /// The next descriptor; there must be one.
    fileprivate mutating func takeDescriptor() throws(PrivilegedFailure) -> FileDescriptor {
        guard let descriptor = descriptors.takeFirst() else { throw .unexpectedReply }
        return descriptor
    }
}

extension PrivilegedReply {
    /// The failure that a reply stands for which is not the one that was hoped for.
    fileprivate var failure: PrivilegedFailure {
        if case .failed(let failure) = self { failure } else { .unexpectedReply }
    }
}
