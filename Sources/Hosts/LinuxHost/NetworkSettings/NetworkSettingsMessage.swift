internal import IPPacket
internal import Provider

/// The part of a tunnel's settings that the privileged side carries out, on its way there. The proxies stay behind: Linux has no
/// place for them.
struct NetworkSettingsMessage: Hashable, Codable, Sendable {
    private var remoteAddress: TextCoded<IPAddress>?
    private var addresses: [TextCoded<InterfaceAddress>]
    private var includedRoutes: [TextCoded<IPPrefix>]
    private var excludedRoutes: [TextCoded<IPPrefix>]
    private var mtu: Int?
    private var overhead: Int
    private var servers: [TextCoded<IPAddress>]?
    private var searchDomains: [String]
    private var domainName: String?
    private var matchDomains: [String]?
    private var matchDomainsNoSearch: Bool

    /// Packs settings.
    init(_ settings: PacketTunnelNetworkSettings) {
        remoteAddress = settings.tunnelRemoteAddress.map { TextCoded($0) }
        addresses = settings.addresses.map { TextCoded($0) }
        includedRoutes = settings.includedRoutes.map { TextCoded($0) }
        excludedRoutes = settings.excludedRoutes.map { TextCoded($0) }
        mtu = settings.mtu
        overhead = settings.tunnelOverheadBytes
        servers = settings.dnsSettings?.servers.map { TextCoded($0) }
        searchDomains = settings.dnsSettings?.searchDomains ?? []
        domainName = settings.dnsSettings?.domainName
        matchDomains = settings.dnsSettings?.matchDomains
        matchDomainsNoSearch = settings.dnsSettings?.matchDomainsNoSearch ?? false
    }

    /// The settings, without proxies.
    var settings: PacketTunnelNetworkSettings {
        let resolvers = servers.map { servers in
            DNSSettings(
                servers: servers.map(\.value), searchDomains: searchDomains, domainName: domainName,
                matchDomains: matchDomains, matchDomainsNoSearch: matchDomainsNoSearch)
        }
        return PacketTunnelNetworkSettings(
            tunnelRemoteAddress: remoteAddress?.value, addresses: addresses.map(\.value),
            includedRoutes: includedRoutes.map(\.value), excludedRoutes: excludedRoutes.map(\.value), mtu: mtu,
            tunnelOverheadBytes: overhead, dnsSettings: resolvers)
    }
}
