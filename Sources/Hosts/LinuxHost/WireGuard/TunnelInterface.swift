internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

/// A WireGuard interface on Linux: its TUN device, its UDP sockets, its device and the threads that move its packets. Who owns it
/// runs the loop, and configures the device.
///
/// ```
///             owner's thread: first queue and pair, the device's own messages, link, routes
///  TUN queues                                                                                UDP pairs on one port
///             further workers: a queue and a pair each
/// ```
struct TunnelInterface: ~Copyable {
    /// What the events of the owner's loop are about. Numbers from `firstFree` on are the owner's.
    enum Token {
        static let tun: UInt64 = 0
        static let socketV4: UInt64 = 1
        static let socketV6: UInt64 = 2
        static let linkNotices: UInt64 = 3
        static let homeNetlink: UInt64 = 4
        static let wakeUp: UInt64 = 5
        static let firstFree: UInt64 = 16
    }

    /// What became of the interface.
    enum Condition: Equatable {
        /// It is there.
        case present
        /// It was deleted.
        case deleted
        /// Reading or writing it failed.
        case failed(TUNError)
    }

    let log: Log
    /// The way to the privileged side.
    var channel: InProcessPrivilegedChannel
    let shared: SharedDevice
    private let offloads: Offloads
    private let socketsFollowLink: Bool
    private var path: PacketPath
    private var workers: [PacketWorker] = []
    private var link: LinkFollower
    private var review: PathReview
    /// What the privileged side knows the workers' sockets by.
    private var workerSockets: [SocketIdentifier] = []
    private(set) var condition = Condition.present
    private var reportedOffloads: OffloadState?

    /// Opens what the interface needs: a TUN device with a queue for each worker, or the inherited one with the one that it has.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    init(_ options: TunnelInterfaceOptions, log: Log) throws(StartFailure) {
        let cryptography = try Self.makeCryptography()
        let pathCryptography = try Self.makeCryptography()
        let shared = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try SharedDevice(Device(cryptography: cryptography, entropy: SystemRandomNumberGenerator()))
        }
        var channel = InProcessPrivilegedChannel(PrivilegedService())
        var queues = try Self.openTUN(options, through: &channel)
        guard let tun = queues.takeFirst() else { throw StartFailure("the kernel gave no queue of \(options.name)") }
        let link = try Self.followLink(of: tun, named: options.name, through: &channel)
        let home = try StartFailure.wrapping("cannot follow changes of routes") { () throws(PrivilegedFailure) in
            try channel.openNetlink()
        }
        var workers: [PacketWorker] = []
        while let queue = queues.takeFirst() {
            let cryptography = try Self.makeCryptography()
            do throws(SystemCallError) {
                workers.append(
                    try PacketWorker(
                        tun: queue, shared: shared, cryptography: cryptography, offloads: options.offloads,
                        queries: options.queries))
            } catch {
                throw StartFailure("cannot make a worker: \(error)")
            }
        }
        self.log = log
        self.channel = channel
        self.link = link
        self.shared = shared
        self.workers = workers
        offloads = options.offloads
        socketsFollowLink = options.socketsFollowLink
        review = PathReview(home)
        path = PacketPath(
            tun: tun, shared: shared, cryptography: pathCryptography, offloads: options.offloads,
            queries: options.queries)
    }

    private static func makeCryptography() throws(StartFailure) -> OpenSSLCryptography {
        try StartFailure.wrapping("libcrypto lacks what WireGuard needs") { () throws(OpenSSLError) in
            try OpenSSLCryptography()
        }
    }

    private static func openTUN(
        _ options: TunnelInterfaceOptions, through channel: inout InProcessPrivilegedChannel
    ) throws(StartFailure) -> TUNQueues {
        try StartFailure.wrapping("cannot create the interface \(options.name)") { () throws(PrivilegedFailure) in
            if let descriptor = options.tunDescriptor {
                return try channel.adoptTUNQueue(descriptor: descriptor, wantsOffloads: options.offloads.tun)
            }
            return try channel.openTUNQueues(
                named: options.name, maximumTransmissionUnit: options.maximumTransmissionUnit,
                options: TUNOptions(wantsOffloads: options.offloads.tun, queues: options.workers))
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

    // MARK: The loop

    /// Starts the workers and watches everything with the owner's loop.
    mutating func start(with loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(path.tun.descriptor, token: Token.tun, interest: .readable)
        try loop.register(shared.wakeUp.descriptor, token: Token.wakeUp, interest: .readable)
        try link.notices.register(with: loop, token: Token.linkNotices)
        try review.home.register(with: loop, token: Token.homeNetlink)
        for worker in workers { try worker.start() }
        applyLinkState(loop)
    }

    /// When to call `act` next at the latest; nil for when something happens.
    func nextDeadline() -> Instant? {
        guard let deadline = shared.deadlineBeforeSleep() else { return review.deadline }
        return review.deadline.map { min($0, deadline) } ?? deadline
    }

    /// Handles an event of the loop. False when it is not the interface's.
    mutating func handle(_ event: Event, _ loop: borrowing EventLoop) -> Bool {
        switch event.token {
        case Token.tun:
            move { (path) throws(TUNError) in try path.readTUN() }
            // A device that is gone would be told again and again, as long as the owner still has something else to do.
            if condition != .present { try? loop.unregister(path.tun.descriptor) }
        case Token.socketV4: move { (path) throws(TUNError) in try path.readSocket(.v4) }
        case Token.socketV6: move { (path) throws(TUNError) in try path.readSocket(.v6) }
        case Token.wakeUp: _ = shared.wakeUp.clear()
        case Token.linkNotices: followLink(loop)
        case Token.homeNetlink: review.readChanges()
        default: return false
        }
        return true
    }

    /// Does what the device has to do by itself, up to one turn's worth, and tells about its events.
    mutating func act(_ onEvent: (WireGuard.Event) -> Void) {
        review.look(at: shared)
        path.act(onEvent)
        reportOffloads()
    }

    /// Moves packets, and notes when the interface turns out to be deleted.
    private mutating func move(_ move: (inout PacketPath) throws(TUNError) -> Void) {
        do {
            try move(&path)
        } catch .deviceDeleted {
            condition = .deleted
        } catch {
            condition = .failed(error)
        }
    }

    /// Ends the workers, closes the sockets, and lets go of the TUN device, which disappears unless it is persistent.
    mutating func close(_ loop: borrowing EventLoop) {
        closeSockets(loop)
        for worker in workers { worker.stop() }
        workers.removeAll()
        try? channel.closeTUN(path.tun.identifier)
    }

    /// A way to write packets into the device for another thread.
    func duplicateDevice() throws(SystemCallError) -> TUNDevice {
        TUNDevice(
            adopting: try path.tun.descriptor.duplicate(), identifier: path.tun.identifier,
            headerLength: path.tun.headerLength, offloads: path.tun.offloads)
    }

    // MARK: The device

    /// Calls `body` with the device, alone.
    func withDevice<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result {
        shared.lock()
        defer { shared.unlock() }
        return body(&shared.device)
    }

    /// What the privileged side knows the TUN device by.
    var identifier: DeviceIdentifier { path.tun.identifier }

    /// The interface's MTU in bytes, as it was when it was last looked at.
    var maximumTransmissionUnit: Int { link.state.maximumTransmissionUnit }

    /// How many threads move packets.
    var workerCount: Int { workers.count + 1 }

    /// The interface's number in its network namespace.
    var index: UInt32 { link.index }

    /// What became of the offloads; where workers differ, what is worse.
    var offloadState: OffloadState {
        workers.reduce(path.offloadState) { $0.combined(with: $1.offloadState) }
    }

    private mutating func reportOffloads() {
        guard log.level >= .verbose else { return }
        let state = offloadState
        if state == reportedOffloads { return }
        reportedOffloads = state
        log.verbose("offloads: \(public: state.description)")
    }

    // MARK: The link

    private mutating func followLink(_ loop: borrowing EventLoop) {
        guard link.readNotices() else { return }
        link.refresh(path.tun, through: &channel)
        applyLinkState(loop)
    }

    private mutating func applyLinkState(_ loop: borrowing EventLoop) {
        let isUp = link.state.isUp
        let wasUp = withDevice { device in
            device.mtu = link.state.maximumTransmissionUnit
            return device.isUp
        }
        guard socketsFollowLink, isUp != wasUp else { return }
        if isUp {
            if let error = openSockets(port: withDevice { $0.listenPort }, loop) {
                log.error("cannot open the UDP sockets: \(public: error.description)")
            }
        } else {
            closeSockets(loop)
        }
        withDevice { $0.setLink(up: isUp, at: HostClock.now()) }
        log.verbose("the link is \(public: isUp ? "up" : "down")")
    }

    // MARK: The sockets

    /// Binds to another port. The same one, or any while the link is down, needs nothing but to be remembered. Returns why it
    /// failed; the old sockets stay then.
    mutating func setListenPort(_ port: UInt16, _ loop: borrowing EventLoop) -> PrivilegedFailure? {
        let hasSockets = path.hasSockets
        let isRemembered = withDevice { device in
            guard !device.isUp || (hasSockets && port != 0 && port == device.listenPort) else { return false }
            device.listenPort = port
            return true
        }
        return isRemembered ? nil : openSockets(port: port, loop)
    }

    /// Sets the mark on the sockets there are and on those to come. Returns why it failed.
    mutating func setFirewallMark(_ mark: UInt32) -> PrivilegedFailure? {
        let identifiers = path.socketIdentifiers + workerSockets
        if !identifiers.isEmpty {
            do {
                try channel.setMark(mark, on: identifiers)
            } catch {
                return error
            }
        }
        withDevice { device in
            device.firewallMark = mark
            device.reviewSources { _ in false }
        }
        return nil
    }

    /// Closes the sockets and opens others on the same port: what is under way to the old ones is lost, and the kernel chooses
    /// source addresses afresh.
    mutating func rebindSockets(_ loop: borrowing EventLoop) -> PrivilegedFailure? {
        guard path.hasSockets else { return nil }
        return openSockets(port: withDevice { $0.listenPort }, loop)
    }

    /// Opens sockets on a port with a mark in place of those there are. Returns why it failed.
    mutating func openSockets(port: UInt16, mark: UInt32, _ loop: borrowing EventLoop) -> PrivilegedFailure? {
        withDevice { $0.firewallMark = mark }
        return openSockets(port: port, loop)
    }

    /// Opens a pair for each worker in place of those there are; these stay when it fails, unless it is their port that is
    /// wanted again.
    private mutating func openSockets(port: UInt16, _ loop: borrowing EventLoop) -> PrivilegedFailure? {
        if path.hasSockets, port != 0, port == withDevice({ $0.listenPort }) { closeSockets(loop) }
        do {
            var opened = try channel.openUDPSocketPairs(
                port: port, mark: withDevice { $0.firewallMark }, wantsTrains: offloads.udpGRO,
                count: workers.count + 1)
            closeSockets(loop)
            let first = opened.takeFirst()
            withDevice { device in
                device.listenPort = opened.port
                device.reviewSources { _ in false }
            }
            register(first, loop)
            _ = path.exchangeSockets(first)
            for worker in workers {
                let pair = opened.takeFirst()
                switch pair {
                case .some(let pair): workerSockets += pair.identifiers
                case .none: break
                }
                _ = worker.exchangeSockets(pair)
            }
            return nil
        } catch {
            return error
        }
    }

    private func register(_ sockets: borrowing UDPSocketPair?, _ loop: borrowing EventLoop) {
        switch sockets {
        case .none: break
        case .some(let sockets):
            for (family, token) in [(AddressFamily.v4, Token.socketV4), (.v6, Token.socketV6)] {
                do {
                    try sockets.register(family, with: loop, token: token)
                } catch {
                    log.error("cannot watch a UDP socket: \(public: error.description)")
                }
            }
        }
    }

    /// Closes the sockets.
    mutating func closeSockets(_ loop: borrowing EventLoop) {
        let identifiers = path.socketIdentifiers + workerSockets
        if identifiers.isEmpty { return }
        for worker in workers { _ = worker.exchangeSockets(nil) }
        let old = path.exchangeSockets(nil)
        switch consume old {
        case .none: break
        case .some(let sockets): sockets.unregister(from: loop)
        }
        workerSockets.removeAll()
        try? channel.closeUDPSockets(identifiers)
    }
}
