internal import PacketTunnel
internal import Provider

// The network settings that are in force, and what they are made from.
extension RunDaemon {
    mutating func apply(
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
}
