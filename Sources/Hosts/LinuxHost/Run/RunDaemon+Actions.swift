internal import Glibc
internal import IPPacket
internal import OpenSSLCrypto
internal import PacketTunnel
internal import Provider
internal import WireGuard

// What the provider wants done.
extension RunDaemon {
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

    /// Calls `body` with the device, alone; nil when the interface is closed.
    @discardableResult
    mutating func withDeviceIfAny<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result? {
        interface?.withDevice(body)
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

    // MARK: Settings

    private mutating func apply(
        _ settings: PacketTunnelNetworkSettings?, _ id: PacketTunnelProvider.OperationID
    ) {
        tell(.settingsApplied(id, put(settings, as: candidates.first?.configuration ?? configuration)))
        // What was under way to servers may have to go another way; without a tunnel the ways are as they were.
        if interface != nil { dns?.routesChanged() }
        // The way to the network may be another one now, or be looked up with another mark.
        observer.expectChange()
    }

    /// Puts settings into force, or with nil takes them back.
    mutating func put(
        _ settings: PacketTunnelNetworkSettings?, as configuration: DaemonConfiguration
    ) -> NetworkSettingsError? {
        guard let settings else {
            clearResolver()
            appliedManner = nil
            return clearDevice()
        }
        let manner = settingsManner(of: configuration)
        // The tunnel's own take its place, so it goes before.
        if manner.resolver == nil { clearResolver() }
        if let failure = putDevice(settings, manner) { return failure }
        if let target = manner.resolver, target != appliedManner?.resolver || resolverKeeper == nil,
            let failure = setResolver(target, settings)
        {
            return failure
        }
        appliedManner = manner
        return nil
    }

    private mutating func putDevice(
        _ settings: PacketTunnelNetworkSettings, _ manner: SettingsManner
    ) -> NetworkSettingsError? {
        // Without an interface there is nothing to set.
        guard let identifier = interface?.identifier else { return name == nil ? nil : .networkSettingsFailed }
        var settings = settings
        if !manner.bringsResolvers { settings.dnsSettings = nil }
        do throws(PrivilegedFailure) {
            let applied = try interface?.channel.applySettings(settings, routing: manner.routing, to: identifier)
            for note in applied?.notes ?? [] { log.info("\(public: note.description)") }
            if let failure = interface?.setFirewallMark(applied?.firewallMark ?? 0) ?? nil {
                log.error("cannot mark the UDP sockets: \(public: failure.description)")
            }
            self.applied = applied
            return nil
        } catch {
            log.error(
                "cannot apply the network settings: \(public: error.publicDescription) (\(private: error.description))")
            guard case .settings(let problem) = error else { return .networkSettingsFailed }
            return problem.asNetworkSettingsError
        }
    }

    private mutating func clearDevice() -> NetworkSettingsError? {
        guard let identifier = interface?.identifier else { return nil }
        applied = nil
        do throws(PrivilegedFailure) {
            let notes = try interface?.channel.clearSettings(of: identifier) ?? []
            for note in notes { log.error("\(public: note.description)") }
            return nil
        } catch {
            log.error(
                "cannot take the network settings back: \(public: error.publicDescription) (\(private: error.description))"
            )
            return .networkSettingsFailed
        }
    }

    /// Adds again what others took away of the settings.
    mutating func restoreSettings() {
        guard applied != nil, let identifier = interface?.identifier,
            let count = try? interface?.channel.restoreSettings(of: identifier), count > 0
        else { return }
        log.info("\(count) addresses, routes and rules were gone and were added again")
    }

    /// How a configuration wants settings put into force. The machine's resolvers are changed as wg-quick does it, unless there
    /// is a part `dns`, which says where names are asked.
    func settingsManner(of configuration: DaemonConfiguration) -> SettingsManner {
        SettingsManner(
            routing: routingOptions(of: configuration), bringsResolvers: configuration.dns == nil,
            resolver: ResolverTarget(configuration))
    }

    /// How routes are made for a configuration.
    private func routingOptions(of configuration: DaemonConfiguration) -> RoutingOptions {
        let quick = configuration.tunnel?.quick
        let table: RoutingOptions.Table =
            switch quick?.table {
            case .off: .off
            case .number(let number): .number(number)
            case .automatic, nil: .automatic
            }
        return RoutingOptions(
            table: table, firewallMark: quick?.tunnel.firewallMark, endpoints: endpointAddresses,
            routesDNSIntoTunnel: configuration.dns != nil && quick?.table == .automatic)
    }

    /// Where the peers are, as far as it is known.
    var endpointAddresses: [IPAddress] {
        provider.currentStatus.peers.compactMap(\.endpoint?.address)
    }

    // MARK: The path

    /// The way to the network as it is now.
    func currentPath() -> NetworkPath {
        let index: UInt32
        switch interface {
        case .some(let interface): index = interface.index
        case .none: index = 0
        }
        return observer.path(to: endpointAddresses, mark: applied?.firewallMark ?? 0, own: index)
    }

    // MARK: Names

    /// Reads which look-ups ended.
    mutating func readOutcomes() {
        for outcome in resolution.takeOutcomes() {
            let id = PacketTunnelProvider.OperationID(rawValue: outcome.id)
            if let address = remaps.removeValue(forKey: outcome.id) {
                let found = (try? outcome.result.get())?.map(\.address) ?? []
                tell(.remapped(id, NAT64Prefix.find(in: found)?.address(for: address)))
            } else {
                tell(.resolved(id, outcome.result))
            }
        }
    }

    /// Finds the prefix of the network by the name that everybody knows the IPv4 addresses of (RFC 7050).
    private mutating func remap(_ address: IPAddress, _ id: PacketTunnelProvider.OperationID) {
        remaps[id.rawValue] = address
        resolution.start(
            EndpointName(host: NAT64Prefix.wellKnownName, port: 0), id: id.rawValue,
            deadline: HostClock.now() + .seconds(5))
    }
}

extension RunDaemon: ControlTarget {
    func withDevice<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result {
        switch interface {
        case .some(let interface): return interface.withDevice(body)
        case .none: preconditionFailure("a control client without an interface")
        }
    }

    mutating func setListenPort(_ port: UInt16) -> Int32? {
        (interface?.setListenPort(port, loop) ?? nil)?.errorNumber
    }

    mutating func setFirewallMark(_ mark: UInt32) -> Int32? {
        (interface?.setFirewallMark(mark) ?? nil)?.errorNumber
    }
}
