import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct SystemResolverTests {
    @Test(arguments: [
        (["127.0.0.1:53", "[::1]:53"], ["127.0.0.1", "::1"]), (["0.0.0.0:53", "127.0.0.1:5353"], ["127.0.0.1"]),
        (["[::]:53", "192.0.2.7:53"], ["::1"]), (["192.0.2.7:53", "[2001:db8::7]:53"], ["192.0.2.7", "2001:db8::7"]),
        (["0.0.0.0:53", "[::]:53", "127.0.0.3:53"], ["127.0.0.1", "::1", "127.0.0.3"]), (["127.0.0.1:54"], []),
        ([], []),
    ])
    func theResolverAsksAtPort53OfTheMachineItself(listen: [String], expected: [String]) {
        var dns = DNSConfiguration()
        dns.listen = listen.compactMap { AddressAndPort(parsing: $0) }
        #expect(dns.systemResolverAddresses.map(\.description) == expected)
    }

    /// The configuration with a tunnel's file that has this line.
    private func proxy(_ line: String, routes: String = "", system: Bool = true) throws -> DNSConfiguration {
        try inTemporaryFolder { folder in
            try writeFile("[Interface]\n\(line)\n", to: "\(folder)/wg0.conf", mode: 0o600)
            try writeFile(
                """
                { tunnel: { config: '\(folder)/wg0.conf' },
                  dns: { listen: ['127.0.0.1:53'], system: \(system), routes: [\(routes)],
                         upstreams: [{ name: 'a', url: 'udp://192.0.2.1' }, { name: 'b', url: 'udp://192.0.2.2' }] } }
                """, to: "\(folder)/sluice.json5", mode: 0o644)
            let loaded = try LoadedConfiguration.read("\(folder)/sluice.json5")
            #expect(loaded.unsupportedParts.isEmpty)
            return try #require(loaded.value.proxyConfiguration)
        }
    }

    @Test func theTunnelsResolversAreUpstreamsForTheirDomains() throws {
        let dns = try proxy("DNS = 10.8.0.1, fd00::1, 10.8.0.1, Corp.Example., x_y, lab.example")
        #expect(dns.upstreams.map(\.name) == ["a", "b", "tunnel", "tunnel-2"])
        #expect(dns.upstreams[3].host == .address(address("fd00::1")) && dns.upstreams[3].transport == .udp)
        #expect(dns.upstreams[3].port == 53)
        #expect(dns.routes.map(\.domains) == [["corp.example", "x_y", "lab.example"]])
        #expect(dns.routes.map(\.upstreams) == [["tunnel", "tunnel-2"]])
        #expect(dns.defaultUpstreams == ["a", "b"])
    }

    @Test func aRouteOfTheConfigurationWins() throws {
        let dns = try proxy(
            "DNS = 10.8.0.1, corp.example, lab.example", routes: "{ domains: ['corp.example'], upstreams: ['b'] }")
        #expect(dns.routes.map(\.domains) == [["corp.example"], ["lab.example"]])
        #expect(dns.routes.map(\.upstreams) == [["b"], ["tunnel"]])
        #expect(dns.defaultUpstreams == ["a"])
        // With no domain left the tunnel's resolvers are asked nothing.
        let none = try proxy(
            "DNS = 10.8.0.1, corp.example", routes: "{ domains: ['corp.example'], upstreams: ['a', 'b'] }")
        #expect(none.routes.count == 1)
        #expect(none.defaultUpstreams == ["a", "b"])
    }

    @Test func withoutDomainsTheyAreAskedAboutEverythingUnlessARouteNamesThem() throws {
        let all = try proxy("DNS = 10.8.0.1", routes: "{ domains: ['corp.example'], upstreams: ['b'] }")
        #expect(all.defaultUpstreams == ["tunnel"])
        #expect(all.routes.map(\.upstreams) == [["b"]])
        let some = try proxy("DNS = 10.8.0.1", routes: "{ domains: ['corp.example'], upstreams: ['tunnel'] }")
        #expect(some.defaultUpstreams == ["a", "b"])
        #expect(some.routes.map(\.upstreams) == [["tunnel"]])
    }

    @Test func theyAreNobodysWithoutTheMachinesResolver() throws {
        let dns = try proxy("DNS = 10.8.0.1, corp.example", system: false)
        #expect(dns.upstreams.map(\.name) == ["a", "b"])
        #expect(dns.routes.isEmpty && dns.defaultUpstreams == nil)
        #expect(try proxy("DNS = corp.example").upstreams.count == 2)
    }
}
