internal import IPPacket
public import Provider

extension PacketTunnelNetworkSettings {
    /// What a packet a tunnel adds around an inner one: an IPv6 header of 40 bytes, a UDP header of 8, and WireGuard's 32.
    public static let wireGuardOverhead = 80

    /// The settings that a tunnel's configuration calls for.
    ///
    /// - What the peers are allowed to send is routed to them, each prefix once. Longer prefixes come first, so that the default
    ///   routes are the last to go in.
    /// - Resolvers are asked about every name (Apple's list of the empty name), as `wg-quick` does.
    /// - Without an MTU it is the physical interface's less ``wireGuardOverhead``.
    /// - No remote address is given: it would make the settings differ whenever a peer moves, and the packets that go to it are
    ///   kept out of the tunnel by their sender.
    ///
    /// - Parameters:
    ///   - configuration: The tunnel.
    ///   - overrides: What wins over it.
    public init(_ configuration: TunnelConfiguration, overrides: DeviceOverrides = DeviceOverrides()) {
        var dnsSettings: DNSSettings?
        if !configuration.dnsServers.isEmpty || !configuration.searchDomains.isEmpty {
            dnsSettings = DNSSettings(
                servers: configuration.dnsServers, searchDomains: configuration.searchDomains,
                matchDomains: configuration.dnsServers.isEmpty ? nil : [""])
        }
        self.init(
            addresses: overrides.addresses ?? configuration.addresses,
            includedRoutes: Self.ordered(overrides.includedRoutes ?? configuration.peers.flatMap(\.allowedIPs)),
            excludedRoutes: Self.ordered(overrides.excludedRoutes ?? []), mtu: overrides.mtu ?? configuration.mtu,
            tunnelOverheadBytes: Self.wireGuardOverhead, dnsSettings: dnsSettings)
    }

    /// Each of `routes` once: longer prefixes first, of one length IPv4 before IPv6, of one family the lower address first.
    private static func ordered(_ routes: [IPPrefix]) -> [IPPrefix] {
        Set(routes).sorted { left, right in
            if left.length != right.length { return left.length > right.length }
            switch (left.address, right.address) {
            case (.v4(let left), .v4(let right)): return left.bits < right.bits
            case (.v6(let left), .v6(let right)): return (left.high, left.low) < (right.high, right.low)
            case (.v4, .v6): return true
            case (.v6, .v4): return false
            }
        }
    }
}
