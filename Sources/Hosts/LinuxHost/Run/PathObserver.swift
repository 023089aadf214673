internal import IPPacket
internal import Provider

/// Watches by which way the machine reaches the network outside of its tunnel: the interface, the addresses and the routers that
/// lead to the tunnel's other ends.
struct PathObserver: ~Copyable {
    /// What comes together counts as one change: an interface that comes up gets its addresses and routes one by one.
    private static let pause = Interval.milliseconds(100)
    /// How long a flood of changes can put the look at the path off.
    private static let longestPause = Interval.seconds(1)

    /// Tells of changes, and answers questions.
    let netlink: NetlinkConnection
    /// When to look next; nil for not before the next change.
    private(set) var deadline: Instant?
    private var firstChange: Instant?

    init(_ netlink: consuming NetlinkConnection) {
        self.netlink = netlink
    }

    /// Reads the changes that came in: the path has to be looked at soon if there were any.
    mutating func readChanges(at now: Instant = HostClock.now()) {
        var isRelevant = false
        do {
            try netlink.readChanges { _ in isRelevant = true }
        } catch {
            isRelevant = true
        }
        if isRelevant { expectChange(at: now) }
    }

    /// Looks at the path soon, as after a change.
    mutating func expectChange(at now: Instant = HostClock.now()) {
        let first = firstChange ?? now
        firstChange = first
        deadline = min(now + Self.pause, first + Self.longestPause)
    }

    /// True when it is time to look at the path; once for each deadline.
    mutating func isDue(at now: Instant) -> Bool {
        guard let deadline, deadline <= now else { return false }
        self.deadline = nil
        firstChange = nil
        return true
    }

    /// The path as it is now.
    ///
    /// - Parameters:
    ///   - endpoints: Where the peers are. The first that can be reached decides which interface it is; without any, the default
    ///     routes do. A tunnel that waits for its peers to call has a path even without those.
    ///   - mark: The firewall mark that the tunnel's own datagrams have.
    ///   - own: The tunnel's interface, which is nobody's way to an endpoint.
    func path(to endpoints: [IPAddress], mark: UInt32, own: UInt32) -> NetworkPath {
        var interface: UInt32?
        var reached: Set<IPVersion> = []
        for endpoint in endpoints where !reached.contains(endpoint.version) {
            guard let route = try? netlink.route(to: endpoint, mark: mark), route.interfaceIndex != own else {
                continue
            }
            interface = interface ?? route.interfaceIndex
            reached.insert(endpoint.version)
        }
        var routers: [(interface: UInt32, address: IPAddress)] = []
        var best: (metric: UInt32, interface: UInt32)?
        for family in AddressFamily.allCases {
            // A kernel without the family has no routes of it.
            try? netlink.forEachRoute(of: family) { route in
                guard route.table == RouteEntry.mainTable, route.prefixLength == 0, let index = route.interfaceIndex,
                    index != own, index != 1
                else { return }
                reached.insert(family == .v4 ? .v4 : .v6)
                if let gateway = route.gateway { routers.append((index, gateway)) }
                if route.metric < best?.metric ?? .max { best = (route.metric, index) }
            }
        }
        if endpoints.isEmpty { interface = best?.interface }
        guard let interface else {
            return endpoints.isEmpty ? NetworkPath(supportsIPv4: true, supportsIPv6: true) : .none
        }
        let addresses = (try? netlink.addresses(of: interface)) ?? []
        let gateways = routers.filter { $0.interface == interface }.map(\.address)
        return NetworkPath(
            interfaceIndex: interface, interfaceName: (try? netlink.link(at: interface).name) ?? "",
            addresses: addresses.map(\.address).sorted { $0.description < $1.description },
            gateways: gateways.sorted { $0.description < $1.description },
            supportsIPv4: reached.contains(.v4), supportsIPv6: reached.contains(.v6))
    }
}
