internal import Glibc
internal import IPPacket
internal import Provider

/// How large the tunnel's packets may be.
enum MTUDerivation {
    /// The smallest that IPv6 works with (RFC 8200 §5).
    static let ipv6Minimum = 1_280
    /// What every IPv4 host takes (RFC 791).
    static let ipv4Minimum = 576
    /// The MTU of a physical network about which nothing is known.
    static let physicalDefault = 1_500

    /// The MTU in bytes: that of the settings, else that of the narrowest way to an endpoint less the tunnel's overhead, else the
    /// same for the default route; never less than IPv6 needs when the tunnel has IPv6.
    ///
    /// - Parameters:
    ///   - mark: The firewall mark that looks up the way past the tunnel's own routes.
    ///   - own: The tunnel's interface, which is nobody's way to an endpoint.
    static func derive(
        _ settings: PacketTunnelNetworkSettings, endpoints: [IPAddress], mark: UInt32, own: UInt32,
        asking netlink: borrowing NetlinkSocket
    ) -> Int {
        let usesIPv6 =
            settings.addresses.contains { AddressFamily(of: $0.address) == .v6 }
            || settings.includedRoutes.contains { AddressFamily(of: $0.address) == .v6 }
        let minimum = usesIPv6 ? ipv6Minimum : ipv4Minimum
        if let mtu = settings.mtu { return usesIPv6 ? max(mtu, ipv6Minimum) : mtu }
        var physical: Int?
        for endpoint in endpoints {
            // An endpoint without a way to it tells nothing.
            guard let route = try? netlink.route(to: endpoint, mark: mark), route.interfaceIndex != own,
                let size = size(of: route.interfaceIndex, route.maximumTransmissionUnit, asking: netlink)
            else { continue }
            physical = min(physical ?? size, size)
        }
        let found = physical ?? defaultRouteMTU(own: own, asking: netlink) ?? physicalDefault
        return max(found - settings.tunnelOverheadBytes, minimum)
    }

    /// The MTU of the main table's default route, the IPv4 one if there are two.
    private static func defaultRouteMTU(own: UInt32, asking netlink: borrowing NetlinkSocket) -> Int? {
        for family in AddressFamily.allCases {
            var best: ListedRoute?
            try? netlink.forEachRoute(of: family) { route in
                guard route.table == RouteEntry.mainTable, route.prefixLength == 0, let index = route.interfaceIndex,
                    index != own, index != 1, route.metric < best?.metric ?? .max
                else { return }
                best = route
            }
            if let best, let index = best.interfaceIndex,
                let size = size(of: index, best.maximumTransmissionUnit, asking: netlink)
            {
                return size
            }
        }
        return nil
    }

    private static func size(
        of index: UInt32, _ routeMTU: Int?, asking netlink: borrowing NetlinkSocket
    ) -> Int? {
        if let routeMTU, routeMTU > 0 { return routeMTU }
        guard let link = try? netlink.link(at: index), link.maximumTransmissionUnit > 0 else { return nil }
        return link.maximumTransmissionUnit
    }
}
