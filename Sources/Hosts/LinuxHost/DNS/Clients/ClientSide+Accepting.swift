internal import CLinux
internal import DNSProxy
internal import Glibc
internal import IPPacket
internal import Provider

extension ClientSide {
    /// How many clients are accepted before others have their turn.
    private static let acceptsPerTurn = 32
    /// How many of those by TLS, each of whom costs more than a turn.
    private static let secureAcceptsPerTurn = 8
    /// How long no clients are accepted when there are no descriptors left.
    private static let pause = Interval.milliseconds(500)

    /// Accepts the clients that wait.
    ///
    /// - Parameters:
    ///   - socket: What they connected to.
    ///   - service: What is spoken with them by TLS; nil for plain TCP.
    mutating func accept(
        _ socket: borrowing FileDescriptor, by service: SecureService? = nil, _ loop: borrowing EventLoop
    ) {
        if service != nil, streams.isBehind { return }
        let decision = shared.withProxy { $0.handleNewFlow() }
        let now = HostClock.now()
        for _ in 0..<(service == nil ? Self.acceptsPerTurn : Self.secureAcceptsPerTurn) {
            let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let number = clinux_accept4(socket.rawValue, flags)
            if number < 0 {
                let error = errno
                switch error {
                case EAGAIN: return
                case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                    // A client that does nothing has what a new one needs.
                    if streams.displaceIdlest(loop, where: { _ in true }) { continue }
                    log.error("no DNS clients are accepted for a moment: \(SystemCallError("accept4", errno: error))")
                    return pause(at: now, loop)
                default:
                    // It gave up before it was accepted, or its network is gone: the next one may not.
                    continue
                }
            }
            let descriptor = FileDescriptor(adopting: number)
            guard decision == .handle, let address = descriptor.peerAddress() else {
                streams.countRefused()
                continue
            }
            streams.add(descriptor, from: address, by: service, at: now, loop)
        }
    }

    /// Accepts nobody for a moment.
    private mutating func pause(at now: Instant, _ loop: borrowing EventLoop) {
        pausedUntil = now + Self.pause
        setAccepting(false, loop)
    }

    /// Watches for clients that want to connect, or no longer.
    func setAccepting(_ accepts: Bool, _ loop: borrowing EventLoop) {
        for listener in listeners {
            try? loop.modify(
                listener.streams, token: ClientSideToken.listener(listener.number).rawValue,
                interest: accepts ? .readable : [])
        }
        for listener in secureListeners {
            try? loop.modify(
                listener.descriptor, token: ClientSideToken.listener(listener.number).rawValue,
                interest: accepts ? .readable : [])
        }
    }
}
