/// The web proxies that a tunnel brings: Apple's NEProxySettings. Linux has no place that all programs read them from, so that a
/// host there hands them to who asks.
public struct ProxySettings: Hashable, Sendable {
    /// A proxy's name or address and its port.
    public struct Server: Hashable, Sendable {
        /// A name, or an address as text.
        public var address: String
        /// The TCP port.
        public var port: UInt16

        /// A proxy at a name or address.
        public init(address: String, port: UInt16) {
            self.address = address
            self.port = port
        }
    }

    /// Where a script says which proxy to take; nil without one.
    public var proxyAutoConfigurationURL: String?
    /// The proxy of http URLs.
    public var httpServer: Server?
    /// The proxy of https URLs.
    public var httpsServer: Server?
    /// True when names without a dot are asked directly.
    public var excludeSimpleHostnames: Bool
    /// Which hosts are asked directly: names, or a star and the end of a name.
    public var exceptionList: [String]
    /// The domains that the proxies are for; nil for all.
    public var matchDomains: [String]?

    /// Proxies for every domain.
    public init(
        proxyAutoConfigurationURL: String? = nil, httpServer: Server? = nil, httpsServer: Server? = nil,
        excludeSimpleHostnames: Bool = false, exceptionList: [String] = [], matchDomains: [String]? = nil
    ) {
        self.proxyAutoConfigurationURL = proxyAutoConfigurationURL
        self.httpServer = httpServer
        self.httpsServer = httpsServer
        self.excludeSimpleHostnames = excludeSimpleHostnames
        self.exceptionList = exceptionList
        self.matchDomains = matchDomains
    }
}
