internal import IPPacket
internal import PacketTunnel

/// How network settings are put into force, beside what they are: the provider knows nothing of it.
struct SettingsManner: Equatable {
    /// How routes are made.
    var routing: RoutingOptions
    /// True when the resolvers of the tunnel's file become the machine's.
    var bringsResolvers: Bool
    /// Where the machine's resolver is pointed; nil when it is left alone.
    var resolver: ResolverTarget?
}

/// Where the machine's resolver is pointed.
struct ResolverTarget: Equatable {
    /// The proxy's addresses, one at least.
    var servers: [IPAddress]
    /// The domains that incomplete names are tried in, before those that the machine has.
    var searchDomains: [String]

    /// What a configuration says; nil when it leaves the resolver alone.
    init?(_ configuration: DaemonConfiguration) {
        guard let dns = configuration.dns, dns.setsSystemResolver else { return nil }
        servers = dns.systemResolverAddresses
        searchDomains = configuration.tunnel?.quick.tunnel.searchDomains ?? []
        if servers.isEmpty { return nil }
    }
}
