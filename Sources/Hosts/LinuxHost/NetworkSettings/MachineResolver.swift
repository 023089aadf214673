internal import IPPacket
internal import Provider

/// The machine's resolver, pointed at servers on the machine and back.
///
/// Whoever keeps it is told: systemd-resolved, resolvconf, or else the resolver file is written. systemd-resolved knows resolvers
/// of interfaces only, and none of the loopback's: where there is no tunnel to be theirs, a TUN device is made that carries
/// nothing, and goes with the process. Its address, which nobody else has (RFC 7600 §4.8), is there because systemd-resolved asks
/// nobody by an interface without one.
///
/// What is done is recorded as a tunnel's settings are, so that the next instance takes it back when this one dies.
final class MachineResolver {
    /// The interface that the record is of where none is needed: every machine has it.
    static let loopback = name("lo")
    /// The device that is made for systemd-resolved.
    static let device = name("sluice-dns")
    private static let deviceAddress = IPv4Address(192, 0, 0, 8)

    /// The tunnel's interface that the resolvers belong to; nil when they are no tunnel's.
    let link: InterfaceName?
    /// Who is told.
    let system: ResolverSystem
    private let settings: InterfaceSettings

    /// A resolver that is not changed yet.
    ///
    /// - Parameters:
    ///   - settings: What is changed is recorded here: of ``device`` where that was made, else of ``loopback``.
    ///   - system: Who keeps the resolver.
    ///   - link: A tunnel's interface that has an address.
    init(_ settings: InterfaceSettings, through system: ResolverSystem, link: InterfaceName?) {
        self.settings = settings
        self.system = system
        self.link = link
    }

    /// Points the resolver at servers, which are never none, in the place of those that it was pointed at.
    func set(
        _ servers: [IPAddress], searchDomains: [String]
    ) throws(InterfaceSettingsError) -> [SettingsNote] {
        var objects: [SettingsObject] = []
        var interface = Self.loopback
        if case .resolved = system, let link {
            interface = link
        } else if settings.interface == Self.device {
            let address = InterfaceAddress(address: .v4(Self.deviceAddress), prefixLength: 32)
            objects = [.address(TextCoded(address)), .linkUp]
            interface = Self.device
        }
        let resolvers = ResolverSettings(machine: servers, searchDomains: searchDomains, of: interface)
        do throws(InterfaceSettingsError) {
            return try settings.apply(objects + [.resolvers(resolvers)], resolversThrough: system)
        } catch {
            if error == .interfaceInUse { throw .resolverInUse }
            throw error
        }
    }

    /// Points it back; returns what did not go as it should.
    func clear() -> [SettingsNote] {
        settings.clear()
    }

    private static func name(_ text: String) -> InterfaceName {
        do throws(InterfaceName.Invalid) {
            return try InterfaceName(text)
        } catch { preconditionFailure("\(text): \(error)") }
    }
}
