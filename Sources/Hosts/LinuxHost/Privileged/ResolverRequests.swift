internal import Glibc
internal import IPPacket
internal import Provider

/// Who keeps the machine's resolver.
enum ResolverKeeper: String, Hashable, Codable, Sendable {
    case resolved = "systemd-resolved"
    case resolvconf
    case file = "the resolver file"

    /// The one that a system is.
    init(_ system: ResolverSystem) {
        switch system {
        case .resolved: self = .resolved
        case .resolvconf: self = .resolvconf
        case .file: self = .file
        }
    }
}

extension PrivilegedService {
    /// Points the machine's resolver at servers. When it fails the resolver is what it was before.
    mutating func setResolver(
        _ servers: [IPAddress], _ searchDomains: [String], link: InterfaceName?
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        guard !servers.isEmpty else { throw .systemCall(SystemCallError("resolver", errno: EINVAL)) }
        var notes: [SettingsNote] = []
        if let resolver, resolver.link != link { notes += clearResolver() }
        let known = resolver
        let changed: MachineResolver
        if let known { changed = known } else { changed = try makeResolver(link) }
        do throws(InterfaceSettingsError) {
            notes += try changed.set(servers, searchDomains: searchDomains)
        } catch {
            if known == nil { closeResolverDevice() }
            throw .settings(error)
        }
        resolver = changed
        return PrivilegedExchange(.resolver(ResolverKeeper(changed.system), notes))
    }

    /// Points the machine's resolver back.
    mutating func clearResolver() -> [SettingsNote] {
        let notes = resolver?.clear() ?? []
        resolver = nil
        closeResolverDevice()
        return notes
    }

    /// Takes back what instances left that died.
    func clearLeftovers() throws(PrivilegedFailure) -> PrivilegedExchange {
        let settings = try machineSettings(of: MachineResolver.loopback)
        do throws(InterfaceSettingsError) {
            return PrivilegedExchange(.settingsCleared(try settings.clearLeftovers()))
        } catch { throw .settings(error) }
    }

    private mutating func makeResolver(_ link: InterfaceName?) throws(PrivilegedFailure) -> MachineResolver {
        let system = ResolverConfiguration(paths: settingsPaths).systemOfMachine()
        var interface = MachineResolver.loopback
        if case .resolved = system, link == nil {
            interface = MachineResolver.device
            // Nobody reads it: the queue that is handed out closes here, and the service's own holds the device.
            let exchange = try openTUN(interface, maximumTransmissionUnit: 1_280, .plain)
            guard case .device(let identifier, _, _, _) = exchange.reply else { throw .unexpectedReply }
            resolverDevice = identifier
        }
        do throws(PrivilegedFailure) {
            return MachineResolver(try machineSettings(of: interface), through: system, link: link)
        } catch {
            closeResolverDevice()
            throw error
        }
    }

    private mutating func closeResolverDevice() {
        if let identifier = resolverDevice.take() { devices[identifier] = nil }
    }

    private func machineSettings(of interface: InterfaceName) throws(PrivilegedFailure) -> InterfaceSettings {
        do throws(NetlinkError) {
            let netlink = try NetlinkSocket(adopting: try netlinkQuestionSocket())
            return InterfaceSettings(of: interface, netlink: netlink, paths: settingsPaths)
        } catch { throw .settings(.question(.link, errno: error.errorNumber)) }
    }
}
