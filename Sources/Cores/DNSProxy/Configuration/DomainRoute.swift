public import DNSMessage

/// Which servers are asked about a domain and all that is below it. No other server ever is.
public struct DomainRoute: Hashable, Sendable {
    /// The domains.
    public var domains: [DomainName]
    /// The servers, in the order to try them.
    public var upstreams: [UpstreamID]
    /// Which of them are asked first; nil for what the configuration says of all.
    public var strategy: UpstreamStrategy?

    /// A route of domains to servers.
    public init(domains: [DomainName], upstreams: [UpstreamID], strategy: UpstreamStrategy? = nil) {
        self.domains = domains
        self.upstreams = upstreams
        self.strategy = strategy
    }

    /// True when both lead the same domains to the same servers.
    func leads(as other: DomainRoute) -> Bool { domains == other.domains && upstreams == other.upstreams }
}
