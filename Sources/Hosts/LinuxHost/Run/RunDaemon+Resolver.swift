internal import Glibc
internal import PacketTunnel
internal import Provider

// The machine's resolver, which `dns.system` points at the DNS proxy. It is pointed here after everything that a name has to be
// looked up for was looked up, and back before the proxy ends.
extension RunDaemon {
    /// Points the machine's resolver at the proxy. A device that has an address is the one that it belongs to where each
    /// interface has resolvers of its own.
    mutating func setResolver(
        _ target: ResolverTarget, _ settings: PacketTunnelNetworkSettings
    ) -> NetworkSettingsError? {
        let link = settings.addresses.isEmpty ? nil : name
        do throws(PrivilegedFailure) {
            let outcome =
                if name == nil {
                    try channel?.setResolver(target.servers, searchDomains: target.searchDomains, link: link)
                } else {
                    try interface?.channel.setResolver(target.servers, searchDomains: target.searchDomains, link: link)
                }
            guard let outcome else { return .networkSettingsFailed }
            for note in outcome.notes { log.info("\(public: note.description)") }
            if resolverKeeper == nil {
                log.info("the machine's resolver asks here now, by way of \(public: outcome.keeper.rawValue)")
            }
            resolverKeeper = outcome.keeper
            return nil
        } catch {
            let isRefused = [EACCES, EPERM].contains(error.errorNumber) && geteuid() != 0
            log.error(
                "cannot point the machine's resolver here: \(public: error.publicDescription)\(public: isRefused ? "; it takes root" : "") (\(private: error.description))"
            )
            return .networkSettingsFailed
        }
    }

    /// Points the machine's resolver back, if it is pointed here.
    mutating func clearResolver() {
        guard resolverKeeper != nil else { return }
        resolverKeeper = nil
        appliedManner?.resolver = nil
        let notes =
            if name == nil { try? channel?.clearResolver() } else { try? interface?.channel.clearResolver() }
        for note in notes ?? [] { log.error("\(public: note.description)") }
    }

    /// Takes back what instances left that died, before a name is looked up: the machine's resolver may be pointed at one. Without
    /// the privileges for it nothing can be done, and nothing of ours is there.
    mutating func clearLeftovers() {
        let notes =
            if name == nil { try? channel?.clearLeftovers() } else { try? interface?.channel.clearLeftovers() }
        for note in notes ?? [] { log.info("\(public: note.description)") }
    }

    /// Lets the machine's resolver go before the proxy stops to listen where it asks.
    mutating func releaseResolver(before new: DaemonConfiguration) {
        if appliedManner?.resolver?.servers != ResolverTarget(new)?.servers { clearResolver() }
    }

    /// Puts what is in force into force again, as a configuration says, after something of it was let go.
    mutating func putAgain(as configuration: DaemonConfiguration) {
        switch provider.status {
        case .connected, .reasserting:
            guard let settings = provider.currentStatus.settings, appliedManner != settingsManner(of: configuration)
            else { break }
            _ = put(settings, as: configuration)
        default: break
        }
    }
}
