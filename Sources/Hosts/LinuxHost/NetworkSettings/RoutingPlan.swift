internal import IPPacket
internal import Provider

/// Which routes and rules bring a tunnel's traffic to it, and nothing else.
///
/// Wherever it can, a route is in the main table, where the longest one wins. It is in a table of the tunnel's own when it is a
/// default route, when all are to be there, when something in it is excluded (a `throw` route, with which the look-up leaves the table), or when an
/// endpoint is in it (the tunnel's own datagrams carry a mark and go round the table). Rules, in the order that they are tried:
///
///     what carries our mark              → main           (our datagrams, connections that came in elsewhere)
///     what carries our inbound mark      → own table      (connections that came in through the tunnel)
///     to port 53, where wanted           → own table
///     for each route in the own table, the longest first:
///         to its destinations            → main, but only routes longer than it
///         to its destinations            → own table
///
/// For a default route the last two are wg-quick's rules.
struct RoutingPlan: Hashable {
    /// The routes; those that others fall back to come last.
    private(set) var routes: [RouteEntry] = []
    /// The rules.
    private(set) var rules: [RuleEntry] = []
    /// The families that have routes in the own table.
    private(set) var ownFamilies: Set<AddressFamily> = []

    /// True when settings take a table of the tunnel's own.
    static func needsOwnTable(_ settings: PacketTunnelNetworkSettings, _ options: RoutingOptions) -> Bool {
        guard options.table == .automatic else { return false }
        return settings.includedRoutes.contains {
            guard !settings.excludedRoutes.contains($0) else { return false }
            return options.routesDNSIntoTunnel || belongsInOwnTable($0, settings, options)
        }
    }

    /// The plan for settings, in the table that the options name.
    ///
    /// - Parameter allotment: What the tunnel has for itself; needed when `needsOwnTable` says so.
    init(
        _ settings: PacketTunnelNetworkSettings, _ options: RoutingOptions, allotment: RoutingAllotment?
    ) throws(InterfaceSettingsError) {
        let excluded = Self.sorted(settings.excludedRoutes)
        // What is excluded as a whole is not included.
        let included = Self.sorted(settings.includedRoutes).filter { !excluded.contains($0) }
        switch options.table {
        case .off: break
        case .number(let table):
            let exceptions = excluded.filter { prefix in included.contains { $0.contains(prefix) } }
            if table == RouteEntry.mainTable && !exceptions.isEmpty { throw .excludedRoutesInMainTable }
            routes += exceptions.map { RouteEntry($0, table: table, kind: .throw) }
            routes += included.map { RouteEntry($0, table: table, kind: .device) }
        case .automatic:
            var own: [IPPrefix] = []
            for prefix in included {
                let isOwn = Self.belongsInOwnTable(prefix, settings, options)
                if isOwn || options.routesDNSIntoTunnel { own.append(prefix) }
                if !isOwn && !Self.isConnected(prefix, settings) {
                    routes.append(RouteEntry(prefix, table: RouteEntry.mainTable, kind: .device))
                }
            }
            guard let allotment else { break }
            let exceptions = excluded.filter { prefix in own.contains { $0.contains(prefix) } }
            routes += exceptions.map { RouteEntry($0, table: allotment.table, kind: .throw) }
            routes += own.map { RouteEntry($0, table: allotment.table, kind: .device) }
            ownFamilies = Set(own.map { AddressFamily(of: $0.address) })
            for family in AddressFamily.allCases where ownFamilies.contains(family) {
                addCommonRules(family, allotment, routesDNS: options.routesDNSIntoTunnel)
            }
            for prefix in own where Self.belongsInOwnTable(prefix, settings, options) {
                addRules(for: prefix, allotment)
            }
        }
    }

    private mutating func addCommonRules(_ family: AddressFamily, _ allotment: RoutingAllotment, routesDNS: Bool) {
        let priority = RoutingAllotment.markedPriority
        rules.append(
            RuleEntry(family: family, priority: priority, table: RouteEntry.mainTable, mark: allotment.mark))
        rules.append(
            RuleEntry(family: family, priority: priority, table: allotment.table, mark: allotment.inboundMark))
        guard routesDNS else { return }
        for transport in [RuleEntry.Transport.udp, .tcp] {
            rules.append(
                RuleEntry(
                    family: family, priority: allotment.servicePriority, table: allotment.table,
                    service: RuleEntry.Service(transport: transport, port: 53)))
        }
    }

    private mutating func addRules(for prefix: IPPrefix, _ allotment: RoutingAllotment) {
        let family = AddressFamily(of: prefix.address)
        let destination = prefix.length == 0 ? nil : TextCoded(prefix)
        rules.append(
            RuleEntry(
                family: family, priority: allotment.tunnelPriority(forLength: prefix.length), table: allotment.table,
                // The inversion would turn a destination around too; there the rule for marked packets has to be enough.
                mark: destination == nil ? allotment.mark : nil, isInverted: destination == nil,
                destination: destination))
        rules.append(
            RuleEntry(
                family: family, priority: allotment.mainPriority(forLength: prefix.length), table: RouteEntry.mainTable,
                destination: destination, suppressedPrefixLength: prefix.length))
    }

    private static func belongsInOwnTable(
        _ prefix: IPPrefix, _ settings: PacketTunnelNetworkSettings, _ options: RoutingOptions
    ) -> Bool {
        if prefix.length == 0 || options.keepsMarkedTrafficOut { return true }
        if settings.excludedRoutes.contains(where: { prefix.contains($0) }) { return true }
        if let remote = settings.tunnelRemoteAddress, prefix.contains(remote) { return true }
        return options.endpoints.contains { prefix.contains($0.value) }
    }

    /// True when the kernel makes a route that covers the prefix by itself, for one of the interface's addresses.
    private static func isConnected(_ prefix: IPPrefix, _ settings: PacketTunnelNetworkSettings) -> Bool {
        settings.addresses.contains { address in
            // For a single IPv4 address it makes none.
            if case .v4 = address.address, address.prefixLength == 32 { return false }
            return address.network.contains(prefix)
        }
    }

    /// Each prefix once, the longest first.
    private static func sorted(_ prefixes: [IPPrefix]) -> [IPPrefix] {
        var seen: Set<IPPrefix> = []
        return prefixes.filter { seen.insert($0).inserted }.sorted { $0.length > $1.length }
    }
}
