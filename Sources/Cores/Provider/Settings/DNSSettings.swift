public import IPPacket

/// The resolvers that a tunnel brings: Apple's NEDNSSettings.
public struct DNSSettings: Hashable, Sendable {
    /// The resolvers, the preferred one first.
    public var servers: [IPAddress]
    /// What is appended to names that are not whole.
    public var searchDomains: [String]
    /// The domain that the machine is in while the tunnel is up.
    public var domainName: String?
    /// The domains that these resolvers are asked about, with everything below them. Nil, or a list with the empty name, means
    /// all; when the tunnel is the default route, it is all in any case.
    public var matchDomains: [String]?
    /// True when ``matchDomains`` are not to be searched as well.
    public var matchDomainsNoSearch: Bool

    /// Resolvers that are asked about everything unless `matchDomains` says which domains.
    public init(
        servers: [IPAddress], searchDomains: [String] = [], domainName: String? = nil, matchDomains: [String]? = nil,
        matchDomainsNoSearch: Bool = false
    ) {
        self.servers = servers
        self.searchDomains = searchDomains
        self.domainName = domainName
        self.matchDomains = matchDomains
        self.matchDomainsNoSearch = matchDomainsNoSearch
    }
}
