public import IPPacket
public import PacketTunnel
public import Provider

/// What `sluice run` is told by its file: one value for each key. What is nil or empty was not in the file.
public struct DaemonConfiguration: Equatable, Sendable {
    /// `device`: the TUN device. Nil for sockets only, unless there is a tunnel.
    public var device: DeviceConfiguration?
    /// `tunnel`: the WireGuard tunnel.
    public var tunnel: TunnelFileConfiguration?
    /// `dns`: the DNS proxy.
    public var dns: DNSConfiguration?
    /// `rules`: what is blocked by name.
    public var rules: RuleConfiguration?
    /// `filter`: what is judged by its flow.
    public var filter: FilterConfiguration?
    /// `proxies`: where flows can be sent instead. Their names differ.
    public var proxies: [ProxyConfiguration] = []
    /// `apps`: which flows take which way. The first that matches decides.
    public var apps: [AppRuleConfiguration] = []
    /// `metrics`: where what is counted can be read.
    public var metrics = MetricsConfiguration()
    /// `offloads`: which of the kernel's offloads to use.
    public var offloads = Offloads()
    /// `log`: what is written to standard error.
    public var log = LogConfiguration()
    /// `control.socket`: the path of the socket that the other commands ask at.
    public var controlSocket = "/run/sluice/control.sock"

    /// A configuration of an empty file.
    public init() {}

    /// The name of the TUN device: what `device` says, else the name of the tunnel's file without `.conf`, as wg-quick does,
    /// else `sluice0`. Nil when no device is wanted.
    public var interfaceName: InterfaceName? {
        if let name = device?.name ?? tunnel?.interfaceName { return name }
        return device == nil && tunnel == nil ? nil : Self.defaultInterfaceName
    }

    private static let defaultInterfaceName = try? InterfaceName("sluice0")
}

/// `device`: the TUN device. What is nil comes from the tunnel's file, where there is one.
public struct DeviceConfiguration: Equatable, Sendable {
    /// The name of the interface.
    public var name: InterfaceName?
    /// The addresses of the interface.
    public var addresses: [InterfaceAddress]?
    /// The largest packet in bytes, 68 to 65,535 (1,280 at least where an address is IPv6).
    public var mtu: Int?
    /// What goes into the device.
    public var includedRoutes: [IPPrefix]?
    /// What does not, although it lies in what does.
    public var excludedRoutes: [IPPrefix]?

    /// A device that is left to the tunnel's file.
    public init() {}
}

/// `tunnel`: a WireGuard tunnel as a wg-quick file says.
public struct TunnelFileConfiguration: Equatable, Sendable {
    /// The path of the file.
    public var path: String
    /// What the file says.
    public var quick: QuickConfiguration
    /// The name of the file without `.conf`, where that can be the name of an interface.
    public var interfaceName: InterfaceName?
}

/// `log`: what is written to standard error.
public struct LogConfiguration: Equatable, Sendable {
    /// How much is written.
    public enum Level: String, CaseIterable, Sendable {
        /// Nothing.
        case silent
        /// What goes wrong.
        case error
        /// What happens, too.
        case info
        /// Everything that helps to find a fault.
        case debug
    }

    /// How much is written.
    public var level = Level.info
    /// True when names and addresses are written as they are.
    public var showsPrivate = false

    /// The log that a daemon writes unless it is told otherwise.
    public init() {}
}
