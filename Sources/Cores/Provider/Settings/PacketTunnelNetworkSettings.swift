public import IPPacket

/// What a packet tunnel asks of the system: Apple's NEPacketTunnelNetworkSettings, with the addresses and routes of both
/// families in one list each.
///
/// Two values that are equal ask for the same thing, so that a host need not apply the second.
public struct PacketTunnelNetworkSettings: Hashable, Sendable {
    /// The address that stands for the tunnel's other end. It is shown, and the system keeps it out of the tunnel by itself.
    public var tunnelRemoteAddress: IPAddress?
    /// The addresses of the tunnel's interface.
    public var addresses: [InterfaceAddress]
    /// What goes into the tunnel: its default routes have the length 0.
    public var includedRoutes: [IPPrefix]
    /// What stays out of the tunnel although a shorter included route covers it.
    public var excludedRoutes: [IPPrefix]
    /// The largest packet in bytes. It wins over ``tunnelOverheadBytes``.
    public var mtu: Int?
    /// How much shorter than the physical interface's largest packet the tunnel's is, in bytes, where ``mtu`` is nil.
    public var tunnelOverheadBytes: Int
    /// The resolvers that the tunnel brings; nil when it brings none.
    public var dnsSettings: DNSSettings?
    /// The web proxies that the tunnel brings; nil when it brings none.
    public var proxySettings: ProxySettings?

    /// Settings without routes, resolvers or proxies.
    public init(
        tunnelRemoteAddress: IPAddress? = nil, addresses: [InterfaceAddress] = [], includedRoutes: [IPPrefix] = [],
        excludedRoutes: [IPPrefix] = [], mtu: Int? = nil, tunnelOverheadBytes: Int = 80,
        dnsSettings: DNSSettings? = nil, proxySettings: ProxySettings? = nil
    ) {
        self.tunnelRemoteAddress = tunnelRemoteAddress
        self.addresses = addresses
        self.includedRoutes = includedRoutes
        self.excludedRoutes = excludedRoutes
        self.mtu = mtu
        self.tunnelOverheadBytes = tunnelOverheadBytes
        self.dnsSettings = dnsSettings
        self.proxySettings = proxySettings
    }
}

extension PacketTunnelNetworkSettings {
    /// The largest packet in bytes on a machine whose physical interface takes packets of `physical` bytes: ``mtu``, or else what
    /// ``tunnelOverheadBytes`` leaves, and no less than the family of the addresses needs: 1,280 for IPv6 (RFC 8200 §5), 68 for
    /// IPv4 (RFC 791 §3.2).
    public func mtu(physical: Int) -> Int {
        if let mtu { return mtu }
        let least = addresses.contains { $0.address.version == .v6 } ? 1280 : 68
        return max(physical - tunnelOverheadBytes, least)
    }
}
