internal import IPPacket

/// How the routes of a tunnel are put into the kernel: what Linux wants to know beyond what Apple's settings say.
struct RoutingOptions: Hashable, Codable, Sendable {
    /// Where routes go.
    enum Table: Hashable, Codable, Sendable {
        /// Nowhere: no routes and no rules.
        case off
        /// Into the main table where that is enough, else into a table of the tunnel's own, with rules.
        case automatic
        /// Into this table, without rules: who looks it up is somebody else's business.
        case number(UInt32)
    }

    /// Where routes go.
    var table = Table.automatic
    /// The firewall mark of the tunnel's own datagrams; nil or 0 to have one chosen. With an automatic table it is also the
    /// table's number, if that is free.
    var firewallMark: UInt32?
    /// The tunnel's other ends: the MTU is that of the narrowest way to one of them, and a route that covers one must not carry
    /// the tunnel's own datagrams.
    var endpoints: [TextCoded<IPAddress>] = []
    /// True when every route is in a table of the tunnel's own, not only those that have to be: what carries the mark, and
    /// connections that came in by another interface, then go round all of them. It takes two rules for each route.
    var keepsMarkedTrafficOut = false
    /// True when what goes to port 53 takes the tunnel although the server is on a link of the machine's own, or has a route
    /// in the main table. It takes a table of the tunnel's own to do so.
    var routesDNSIntoTunnel = false

    /// Options for a tunnel to `endpoints`.
    init(
        table: Table = .automatic, firewallMark: UInt32? = nil, endpoints: [IPAddress] = [],
        keepsMarkedTrafficOut: Bool = false, routesDNSIntoTunnel: Bool = false
    ) {
        self.table = table
        self.firewallMark = firewallMark == 0 ? nil : firewallMark
        self.endpoints = endpoints.map { TextCoded($0) }
        self.keepsMarkedTrafficOut = keepsMarkedTrafficOut
        self.routesDNSIntoTunnel = routesDNSIntoTunnel
    }
}
