internal import Glibc
internal import PacketTunnel
internal import Provider

// The provider: what it is told, and what it wants done.
extension RunDaemon {
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

    /// Does what the provider wants, in its order.
    mutating func perform(_ actions: [PacketTunnelProvider.Action]) {
        for action in actions { perform(action) }
    }

    private mutating func perform(_ action: PacketTunnelProvider.Action) {
        switch action {
        case .completeStart(_, let failure):
            if let failure { log.error("cannot start: \(failure)") }
            perform(sequence.tunnelStarted(failure == nil))
        case .completeStop(let failure):
            if let failure { log.error("the tunnel is down, but: \(failure)") }
            perform(sequence.tunnelStopped(failure == nil))
        case .completeReload(let id, let result): completeReload(id, result)
        case .completeSleep, .shed: break
        case .cancelTunnel(let failure):
            log.error("the tunnel ended: \(failure)")
            perform(sequence.tunnelLost())
        case .setReasserting(let value): log.info("reasserting: \(public: value ? "yes" : "no")")

        case .resolve(let name, let id, let deadline):
            resolution.start(name, id: id.rawValue, deadline: deadline)
        case .cancelResolve(let id): resolution.cancel(id.rawValue)
        case .remap(let address, let id): remap(address, id)
        case .openSockets(let options, let id): openSockets(options, id)
        case .rebindSockets:
            if let failure = interface?.rebindSockets(loop) ?? nil {
                log.error("cannot open the UDP sockets anew: \(public: failure.description)")
            }
        case .closeSockets: interface?.closeSockets(loop)
        case .apply(let settings, let id): apply(settings, id)

        case .configure(let changes): withDeviceIfAny { $0.apply(changes, at: HostClock.now()) }
        case .sendKeepalives(let keys): withDeviceIfAny { $0.sendKeepalives(to: keys) }
        case .initiateHandshakes(let keys): withDeviceIfAny { $0.initiateHandshakes(with: keys) }
        case .pauseDevice: isDevicePaused = true
        case .resumeDevice: isDevicePaused = false

        case .reply(let id, let answer): reply(id, answer)
        case .log(let level, let message):
            // Without an interface it speaks of a tunnel that is not there.
            if name != nil { log.write(message, importance: level) }
        }
    }

    // MARK: Sockets

    private mutating func openSockets(
        _ options: PacketTunnelProvider.SocketOptions, _ id: PacketTunnelProvider.OperationID
    ) {
        let mark = options.firewallMark ?? applied?.firewallMark ?? 0
        let failure = interface?.openSockets(port: options.port, mark: mark, loop) ?? nil
        if let failure { log.error("cannot open the UDP sockets: \(public: failure.description)") }
        tell(.socketsOpened(id, failure.map { Self.socketFailure($0) }))
    }

    private static func socketFailure(_ failure: PrivilegedFailure) -> SocketFailure {
        switch failure.errorNumber {
        case EADDRINUSE: .portInUse
        case EACCES, EPERM: .notPermitted
        default: .unavailable
        }
    }
}
