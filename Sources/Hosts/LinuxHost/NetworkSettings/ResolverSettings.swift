internal import IPPacket
internal import Provider

/// The resolvers of a tunnel, in the terms of Linux.
struct ResolverSettings: Hashable, Codable, Sendable {
    /// The interface that they belong to.
    var interface: InterfaceName
    /// The resolvers, the preferred one first; never empty.
    var servers: [TextCoded<IPAddress>]
    /// The domains that incomplete names are tried in.
    var searchDomains: [String]
    /// The domains that the resolvers are asked about; nil for all.
    var routedDomains: [String]?
    /// True when they are the machine's own, whose resolver file says more than which servers there are: that stays.
    var keepsOptions = false

    /// The resolvers that a tunnel brings; nil when it brings none. With a default route they are asked about every name.
    init?(_ settings: PacketTunnelNetworkSettings, of interface: InterfaceName) {
        guard let resolvers = settings.dnsSettings, !resolvers.servers.isEmpty else { return nil }
        self.interface = interface
        servers = resolvers.servers.map { TextCoded($0) }
        let matches = resolvers.matchDomains.map { $0.filter { !$0.isEmpty } } ?? []
        let isDefaultRoute = settings.includedRoutes.contains { $0.length == 0 }
        let takesAll = isDefaultRoute || resolvers.matchDomains?.contains("") ?? true
        routedDomains = takesAll ? nil : matches
        var seen: Set<String> = []
        let searched =
            [resolvers.domainName].compactMap(\.self) + resolvers.searchDomains
            + (resolvers.matchDomainsNoSearch ? [] : matches)
        // A domain goes into files line by line and into arguments of programs: what could end a line or look like an option
        // is no domain.
        searchDomains = searched.filter { Self.isDomain($0) && seen.insert($0).inserted }
        routedDomains = routedDomains?.filter(Self.isDomain)
    }

    /// The machine's own resolvers, which are asked about every name.
    ///
    /// - Parameters:
    ///   - servers: The resolvers, the preferred one first; never empty.
    ///   - searchDomains: The domains that incomplete names are tried in, before those that the machine has.
    ///   - interface: The interface that they belong to where each interface has its own.
    init(machine servers: [IPAddress], searchDomains: [String], of interface: InterfaceName) {
        self.interface = interface
        self.servers = servers.map { TextCoded($0) }
        self.searchDomains = searchDomains.filter(Self.isDomain)
        keepsOptions = true
    }

    /// Lines as `resolv.conf` has them.
    var resolverLines: String {
        var text = servers.map { "nameserver \($0.value)\n" }.joined()
        if !searchDomains.isEmpty { text += "search \(searchDomains.joined(separator: " "))\n" }
        return text
    }

    private static func isDomain(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.first != UInt8(ascii: "-") && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }
}

/// Who is told about resolvers.
enum ResolverSystem: Hashable, Codable, Sendable {
    /// systemd-resolved, through its program.
    case resolved(program: String)
    /// resolvconf, with the name of our record.
    case resolvconf(program: String, record: String)
    /// Nobody: the file itself is written.
    case file
}
