internal import DNSMessage
internal import DNSProxy
internal import Provider

extension DNSProxyConfiguration {
    /// What the core is told of a daemon's configuration. Servers are in the same order.
    init(_ dns: DNSConfiguration, _ rules: RuleConfiguration?) {
        let indices = Dictionary(dns.upstreams.enumerated().map { ($1.name, UpstreamID(index: $0)) }) { first, _ in
            first
        }
        self.init(
            upstreams: dns.upstreams.map { upstream in
                DNSUpstream(
                    name: upstream.name, transport: ExchangeTransport(upstream.transport),
                    isTrustedForAuthenticData: dns.trustedForAD.contains(upstream.name))
            },
            defaultUpstreams: dns.defaultUpstreams?.compactMap { indices[$0] },
            routes: dns.routes.map { route in
                DomainRoute(
                    domains: route.domains.compactMap { try? DomainName(parsing: $0) },
                    upstreams: route.upstreams.compactMap { indices[$0] },
                    strategy: route.strategy.map { UpstreamStrategy($0) })
            })
        strategy = UpstreamStrategy(dns.strategy)
        self.rules = rules?.inline ?? []
        addressRules = rules?.inlineAddresses ?? []
        blockedAnswer = rules?.blockedAnswer ?? .zero
        timeout = dns.timeout
        clientIdle = dns.clientIdle
        mixesCase = dns.mixesCase
        records = dns.records
        blocksRebinding = dns.rebinding == .block
        rebindingAllowed = dns.rebindingAllowed.compactMap { try? DomainName(parsing: $0) }
        blocksPrivateRelay = dns.privateRelay == .block
        forwardsSingleLabels = dns.singleLabels == .forward
        cacheByteCount = dns.cacheMaxBytes
        prefetches = dns.prefetches
        staleLimit = dns.staleLimit
        timeToLiveBounds = dns.timeToLiveBounds
        rewriting = dns.rewriting
        passesClientSubnet = dns.passesClientSubnet
        switch dns.dns64 {
        case .off: dns64 = .off
        case .automatic: dns64 = .automatic
        case .prefix(let prefix): dns64 = .prefix(prefix)
        }
    }
}

extension UpstreamStrategy {
    /// The strategy of the configuration.
    init(_ strategy: DNSConfiguration.Strategy) {
        switch strategy {
        case .ordered: self = .ordered
        case .fastest: self = .fastest
        case .parallel: self = .parallel
        }
    }
}

extension ExchangeTransport {
    /// The transport of a server in the configuration.
    init(_ transport: DNSUpstreamConfiguration.Transport) {
        switch transport {
        case .udp: self = .udp
        case .tcp: self = .tcp
        case .tls: self = .tls
        case .https: self = .https
        }
    }
}
