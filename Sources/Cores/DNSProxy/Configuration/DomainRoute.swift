public import DNSMessage

/// Which servers are asked about a domain and all that is below it. No other server ever is.
public struct DomainRoute: Hashable, Sendable {
    /// The domains.
    public var domains: [DomainName]
    /// The servers, in the order to try them.
    public var upstreams: [UpstreamID]

    /// A route of domains to servers.
    public init(domains: [DomainName], upstreams: [UpstreamID]) {
        self.domains = domains
        self.upstreams = upstreams
    }
}
