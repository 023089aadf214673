public import IPPacket
public import Provider

/// What the daemon's own configuration says of the tunnel's interface. What it names wins over the tunnel's file; the allowed IPs
/// of the peers then only say which packets are whose.
public struct DeviceOverrides: Hashable, Sendable {
    /// The name of the interface.
    public var name: String?
    /// The addresses of the interface.
    public var addresses: [InterfaceAddress]?
    /// The largest packet in bytes.
    public var mtu: Int?
    /// What goes into the tunnel.
    public var includedRoutes: [IPPrefix]?
    /// What stays out of the tunnel.
    public var excludedRoutes: [IPPrefix]?

    /// Overrides; without arguments none.
    public init(
        name: String? = nil, addresses: [InterfaceAddress]? = nil, mtu: Int? = nil, includedRoutes: [IPPrefix]? = nil,
        excludedRoutes: [IPPrefix]? = nil
    ) {
        self.name = name
        self.addresses = addresses
        self.mtu = mtu
        self.includedRoutes = includedRoutes
        self.excludedRoutes = excludedRoutes
    }
}
