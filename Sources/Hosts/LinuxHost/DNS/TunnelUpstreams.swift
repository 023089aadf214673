internal import IPPacket
internal import PacketTunnel

/// The resolvers of the tunnel's file (`DNS=`) as upstreams of the proxy: the first is called `tunnel`, and those after it
/// `tunnel-2` and so on.
///
/// - With domains in `DNS=` they are asked about these, but for those that `dns.routes` sends elsewhere, and about nothing else.
/// - Without domains they are asked about everything that has no route, and nobody else is (wg-quick's exclusive resolvers, and
///   Apple's empty list of match domains), unless `dns.routes` names them: then they are asked about what it says.
struct TunnelUpstreams {
    /// The resolvers, the preferred one first.
    let servers: [IPAddress]
    /// The domains, as they can be asked about.
    let domains: [String]

    /// What a tunnel brings: nothing when there is none.
    init(_ tunnel: TunnelFileConfiguration?) {
        var seen: Set<IPAddress> = []
        servers = tunnel?.quick.tunnel.dnsServers.filter { seen.insert($0).inserted } ?? []
        domains =
            tunnel?.quick.tunnel.searchDomains.filter { HostName.isValid($0) }.map { HostName.canonical($0) } ?? []
    }

    /// The names of the upstreams.
    var names: [String] {
        servers.indices.map { $0 == 0 ? "tunnel" : "tunnel-\($0 + 1)" }
    }

    /// The proxy's configuration with the upstreams.
    func added(to configuration: DNSConfiguration) -> DNSConfiguration {
        guard !servers.isEmpty else { return configuration }
        var dns = configuration
        dns.upstreams += zip(names, servers).map { name, address in
            DNSUpstreamConfiguration(name: name, transport: .udp, host: .address(address), port: 53)
        }
        let routed = Set(configuration.routes.flatMap(\.upstreams))
        if domains.isEmpty, routed.isDisjoint(with: names) {
            dns.defaultUpstreams = names
            return dns
        }
        let own = configuration.upstreams.map(\.name)
        let free = own.filter { !routed.contains($0) }
        dns.defaultUpstreams = free.isEmpty ? own : free
        var known = Set(configuration.routes.flatMap(\.domains))
        let unrouted = domains.filter { known.insert($0).inserted }
        if !unrouted.isEmpty { dns.routes.append(DNSConfiguration.Route(domains: unrouted, upstreams: names)) }
        return dns
    }
}

extension DaemonConfiguration {
    /// What the DNS proxy does: `dns`, and with `dns.system` what the tunnel's file adds to it.
    var proxyConfiguration: DNSConfiguration? {
        guard let dns else { return nil }
        return dns.setsSystemResolver ? TunnelUpstreams(tunnel).added(to: dns) : dns
    }
}
