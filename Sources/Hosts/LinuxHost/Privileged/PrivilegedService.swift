internal import Glibc

/// The only code that makes privileged calls. It keeps a duplicate of every descriptor that it hands out and that it
/// may have to act on again.
struct PrivilegedService: ~Copyable {
    /// The folder of control sockets.
    let controlSocketFolder: String
    /// Where settings find and leave things.
    let settingsPaths: SettingsPaths
    private var nextIdentifier: UInt32 = 1
    var devices: [DeviceIdentifier: OwnedDescriptor] = [:]
    var sockets: [SocketIdentifier: OwnedDescriptor] = [:]
    var controlSockets: [ControlSocketIdentifier: ControlSocketFile] = [:]
    /// The settings in force; they are taken back when they go.
    var settings: [DeviceIdentifier: InterfaceSettings] = [:]
    /// The machine's resolver while it is pointed at us; it is pointed back when this goes.
    var resolver: MachineResolver?
    /// The device that was made for it.
    var resolverDevice: DeviceIdentifier?

    /// A service that has opened nothing yet.
    init(controlSocketFolder: String = "/var/run/wireguard", settingsPaths: SettingsPaths = SettingsPaths()) {
        self.controlSocketFolder = controlSocketFolder
        self.settingsPaths = settingsPaths
    }

    /// Carries out a request.
    mutating func perform(_ request: PrivilegedRequest) -> PrivilegedExchange {
        do throws(PrivilegedFailure) {
            switch request {
            case .openTUN(let name, let maximumTransmissionUnit, let options):
                return try openTUN(name, maximumTransmissionUnit: maximumTransmissionUnit, options)
            case .adoptTUN(let descriptor, let wantsOffloads):
                return try adoptTUN(descriptor, wantsOffloads: wantsOffloads)
            case .closeTUN(let identifier):
                guard devices[identifier] != nil else { throw .unknownIdentifier }
                // Settings go while the device is there still.
                settings[identifier] = nil
                devices[identifier] = nil
                return PrivilegedExchange(.done)
            case .openUDPSockets(let port, let mark, let wantsTrains, let count):
                return try openUDPSockets(port: port, mark: mark, wantsTrains: wantsTrains, count: count)
            case .setMark(let identifiers, let mark): return try setMark(mark, on: identifiers)
            case .closeUDPSockets(let identifiers):
                for identifier in identifiers where sockets.removeValue(forKey: identifier) == nil {
                    throw .unknownIdentifier
                }
                return PrivilegedExchange(.done)
            case .openControlSocket(let name): return try openControlSocket(for: name)
            case .openMessageSocket(let path): return try openMessageSocket(at: path)
            case .adoptControlSocket(let descriptor): return try adoptControlSocket(descriptor)
            case .removeControlSocket(let identifier): return try removeControlSocket(identifier)
            case .openNetlink(let device): return try openNetlink(namespaceOf: device)
            case .openLinkNotices: return try openLinkNotices()
            case .applySettings(let identifier, let message, let routing):
                return try applySettings(message.settings, routing, to: identifier)
            case .restoreSettings(let identifier):
                guard devices[identifier] != nil else { throw .unknownIdentifier }
                return PrivilegedExchange(.settingsRestored(settings[identifier]?.restore() ?? 0))
            case .clearSettings(let identifier): return try clearSettings(of: identifier)
            case .setResolver(let servers, let searchDomains, let link):
                return try setResolver(servers.map(\.value), searchDomains, link: link)
            case .clearResolver: return PrivilegedExchange(.settingsCleared(clearResolver()))
            case .clearLeftovers: return try clearLeftovers()
            }
        } catch {
            return PrivilegedExchange(.failed(error))
        }
    }

    /// A number that no earlier device or socket had.
    mutating func makeIdentifier() -> UInt32 {
        defer { nextIdentifier &+= 1 }
        return nextIdentifier
    }
}

/// A descriptor that a collection can hold.
final class OwnedDescriptor: Sendable {
    let descriptor: FileDescriptor

    init(_ descriptor: consuming FileDescriptor) {
        self.descriptor = descriptor
    }
}

/// Runs a system call on behalf of the service.
@inline(__always)
func privilegedCall<Result: SignedInteger>(
    _ operation: StaticString, _ call: () -> Result
) throws(PrivilegedFailure) -> Result {
    do throws(SystemCallError) { return try systemCall(operation, call) } catch { throw .systemCall(error) }
}
