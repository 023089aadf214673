internal import Glibc
internal import IPPacket

/// Names a TUN device between the privileged side and the rest.
struct DeviceIdentifier: Hashable, Codable, Sendable {
    /// The number that the privileged side chose.
    var rawValue: UInt32
}

/// Names a UDP socket between the privileged side and the rest.
struct SocketIdentifier: Hashable, Codable, Sendable {
    /// The number that the privileged side chose.
    var rawValue: UInt32
}

/// Names the sockets of both families on one port; nil for a family that the machine lacks.
struct SocketIdentifierPair: Equatable, Codable, Sendable {
    /// The IPv4 socket.
    var v4: SocketIdentifier?
    /// The IPv6 socket.
    var v6: SocketIdentifier?
}

/// Names a control socket between the privileged side and the rest.
struct ControlSocketIdentifier: Hashable, Codable, Sendable {
    /// The number that the privileged side chose.
    var rawValue: UInt32
}

/// What the unprivileged side can ask of the privileged one.
enum PrivilegedRequest: Equatable, Codable, Sendable {
    /// Create a TUN device, or attach to a persistent one, in the service's network namespace and set its MTU in bytes.
    /// Reply: `device`, with a descriptor for each queue.
    case openTUN(name: InterfaceName, maximumTransmissionUnit: Int, options: TUNOptions)
    /// Take over a TUN descriptor that the process was started with. Reply: `device`, with its descriptor. Offloads are only
    /// had where it has virtio headers.
    case adoptTUN(descriptor: Int32, wantsOffloads: Bool)
    /// Let go of a TUN device: one that is not persistent disappears once the other side has closed its descriptor too.
    /// Reply: `done`.
    case closeTUN(DeviceIdentifier)
    /// Bind a UDP socket of each family to a port in host order, 0 for any port that is free in both; with a firewall
    /// mark other than 0 on both; `count` times over, so that the kernel spreads the senders over them. With trains wanted,
    /// the kernel may join datagrams of one sender (`UDP_GRO`). Reply: `sockets`, with the descriptors of those that exist,
    /// IPv4 first in each pair.
    case openUDPSockets(port: UInt16, mark: UInt32, wantsTrains: Bool, count: Int)
    /// Change the firewall mark of sockets that live; 0 for none. Reply: `done`.
    case setMark([SocketIdentifier], mark: UInt32)
    /// Let go of UDP sockets: the port is free once the other side has closed its descriptors too. Reply: `done`.
    case closeUDPSockets([SocketIdentifier])
    /// Bind and listen on the control socket of an interface. Reply: `controlSocket`, with the listening descriptor and
    /// an inotify descriptor that watches its folder.
    case openControlSocket(InterfaceName)
    /// Bind and listen on a socket for the messages of programs, at a path whose folder is made if it is missing. Reply as for
    /// `openControlSocket`.
    case openMessageSocket(path: String)
    /// Take over a listening control socket that the process was started with. Reply as for `openControlSocket`.
    case adoptControlSocket(descriptor: Int32)
    /// Remove the control socket's file, unless another has taken its place. Reply: `done`.
    case removeControlSocket(ControlSocketIdentifier)
    /// Open netlink in the network namespace that a device is in at present; in the service's own for nil. Reply:
    /// `netlink`, with a descriptor subscribed to changes and one for questions.
    case openNetlink(namespaceOf: DeviceIdentifier?)
    /// Open netlink for the changes of links in every network namespace that the service's own has a number for, among them
    /// those that a device's netlink was opened in. Unlike a socket in such a namespace it does not keep it in being.
    /// Reply: `netlink`, with a descriptor subscribed to changes and one for questions in the service's own namespace.
    case openLinkNotices
    /// Bring settings of a device into force, in the place of those that are: all of them, or none. The device must be in the
    /// service's network namespace. Reply: `settings`.
    case applySettings(DeviceIdentifier, NetworkSettingsMessage, routing: RoutingOptions)
    /// Add again what somebody took away of the addresses, routes and rules of a device's settings. Reply: `settingsRestored`.
    case restoreSettings(DeviceIdentifier)
    /// Take back the settings of a device; closing it does so too. Reply: `settingsCleared`.
    case clearSettings(DeviceIdentifier)
    /// Point the machine's resolver at servers, one at least. A tunnel's interface that has an address may be named for it to
    /// belong to. Reply: `resolver`.
    case setResolver([TextCoded<IPAddress>], searchDomains: [String], link: InterfaceName?)
    /// Point the machine's resolver back. Reply: `settingsCleared`.
    case clearResolver
    /// Take back what instances in this network namespace left that died. Reply: `settingsCleared`.
    case clearLeftovers
}

/// What the privileged side answers.
enum PrivilegedReply: Equatable, Codable, Sendable {
    /// It is done; no descriptors.
    case done
    /// A TUN device, with a descriptor for each queue; the bytes of the virtio header before each packet, 0 for none; and
    /// what the kernel leaves unfinished in packets.
    case device(DeviceIdentifier, name: InterfaceName, headerLength: Int, offloads: TUNOffloads)
    /// Pairs of UDP sockets on one port, with a descriptor for each socket that has an identifier. True when datagrams may
    /// come joined.
    case sockets([SocketIdentifierPair], port: UInt16, receivesTrains: Bool)
    /// A control socket: its file's folder and name; two descriptors.
    case controlSocket(ControlSocketIdentifier, folder: String, file: String)
    /// Netlink, with two descriptors. True when it is in the namespace that the service itself is in.
    case netlink(isHome: Bool)
    /// Settings are in force.
    case settings(AppliedSettings)
    /// All of the settings is there again; how much was missing.
    case settingsRestored(Int)
    /// Settings are not in force any more; what is worth a line in the log.
    case settingsCleared([SettingsNote])
    /// The machine's resolver is pointed where it was to be; who keeps it, and what is worth a line in the log.
    case resolver(ResolverKeeper, [SettingsNote])
    /// It could not be done.
    case failed(PrivilegedFailure)
}

/// Why a privileged request was not carried out.
enum PrivilegedFailure: Error, Hashable, Codable, Sendable {
    /// A system call failed.
    case systemCall(SystemCallError)
    /// A live process answers on the control socket.
    case controlSocketInUse
    /// The identifier names nothing.
    case unknownIdentifier
    /// The inherited descriptor is not what it was said to be.
    case unsuitableDescriptor
    /// Settings could not be brought into force; those that were before still are.
    case settings(InterfaceSettingsError)
    /// The other side answered something that does not fit the request.
    case unexpectedReply
}

extension PrivilegedFailure {
    /// The `errno` that tells a control client about the failure.
    var errorNumber: Int32 {
        switch self {
        case .systemCall(let error): error.errno
        case .settings(let error): error.errorNumber
        case .controlSocketInUse: EADDRINUSE
        case .unknownIdentifier, .unsuitableDescriptor: EBADF
        case .unexpectedReply: EIO
        }
    }
}

extension PrivilegedFailure {
    /// What went wrong, without addresses and words of other programs: this can be in a log.
    var publicDescription: String {
        switch self {
        case .settings(let error): error.publicDescription
        case .systemCall, .controlSocketInUse, .unknownIdentifier, .unsuitableDescriptor, .unexpectedReply: description
        }
    }
}

extension PrivilegedFailure: CustomStringConvertible {
    /// What went wrong, for a log.
    var description: String {
        switch self {
        case .systemCall(let error): error.description
        case .settings(let error): error.description
        case .controlSocketInUse: "another process is serving the control socket"
        case .unknownIdentifier: "no such device or socket"
        case .unsuitableDescriptor: "an inherited descriptor is not of the expected kind"
        case .unexpectedReply: "the privileged side gave an answer that does not fit the question"
        }
    }
}
