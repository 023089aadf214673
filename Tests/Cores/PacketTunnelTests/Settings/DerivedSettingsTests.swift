import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing
import WireGuard

@Suite("Network settings of a tunnel")
struct DerivedSettingsTests {
    @Test("Allowed IPs become routes: each once, longer prefixes first, default routes last")
    func routes() {
        var one = peer(1, at: nil)
        one.allowedIPs = ["0.0.0.0/0", "::/0", "10.0.0.0/8", "10.8.0.0/24", "fd00::/8"].map(prefix)
        var two = peer(2, at: nil)
        two.allowedIPs = ["10.8.0.0/24", "10.7.0.0/24", "192.0.2.1/32", "2001:db8::1/128"].map(prefix)
        let settings = PacketTunnelNetworkSettings(tunnel(one, two))
        #expect(
            settings.includedRoutes.map(\.description) == [
                "2001:db8::1/128", "192.0.2.1/32", "10.7.0.0/24", "10.8.0.0/24", "10.0.0.0/8", "fd00::/8", "0.0.0.0/0",
                "::/0",
            ])
        #expect(settings.excludedRoutes.isEmpty)
        #expect(settings.tunnelRemoteAddress == nil)
    }

    @Test("The order of peers and of prefixes makes no difference to the settings")
    func order() {
        var one = tunnel(peer(1, at: nil), peer(2, at: nil))
        let settings = PacketTunnelNetworkSettings(one)
        one.peers.reverse()
        #expect(PacketTunnelNetworkSettings(one) == settings)
    }

    @Test("Resolvers are asked about everything; without any there are no DNS settings")
    func resolvers() {
        var configuration = tunnel()
        #expect(PacketTunnelNetworkSettings(configuration).dnsSettings == nil)
        configuration.dnsServers = [v4(10, 8, 0, 1)]
        configuration.searchDomains = ["corp.example"]
        #expect(
            PacketTunnelNetworkSettings(configuration).dnsSettings
                == DNSSettings(servers: [v4(10, 8, 0, 1)], searchDomains: ["corp.example"], matchDomains: [""]))
        configuration.dnsServers = []
        #expect(
            PacketTunnelNetworkSettings(configuration).dnsSettings
                == DNSSettings(servers: [], searchDomains: ["corp.example"]))
    }

    @Test("The MTU is the written one, or the physical interface's less 80")
    func mtu() {
        var configuration = tunnel()
        #expect(PacketTunnelNetworkSettings(configuration).mtu == nil)
        #expect(PacketTunnelNetworkSettings(configuration).tunnelOverheadBytes == Reference.overhead)
        configuration.mtu = 1300
        #expect(PacketTunnelNetworkSettings(configuration).mtu == 1300)
    }

    @Test("What the daemon's configuration names wins over the file, each by itself")
    func overrides() {
        var configuration = tunnel(peer(1, at: nil))
        configuration.mtu = 1300
        let plain = PacketTunnelNetworkSettings(configuration)
        var expected = plain
        var overrides = DeviceOverrides()
        func check() {
            #expect(PacketTunnelNetworkSettings(configuration, overrides: overrides) == expected)
        }
        check()
        overrides.mtu = 1420
        expected.mtu = 1420
        check()
        overrides.addresses = [interfaceAddress("10.9.0.1/24")]
        expected.addresses = [interfaceAddress("10.9.0.1/24")]
        check()
        overrides.excludedRoutes = [prefix("192.168.0.0/16")]
        expected.excludedRoutes = [prefix("192.168.0.0/16")]
        check()
        overrides.includedRoutes = []
        expected.includedRoutes = []
        check()
    }

    @Test("An MTU that is derived keeps IPv6 working: not below 1280 with an IPv6 address")
    func derivedMTU() {
        let cases: [(explicit: Int?, addresses: [String], physical: Int, expected: Int)] = [
            (nil, ["10.8.0.2/24"], 1500, 1420), (nil, ["10.8.0.2/24", "fd00::2/64"], 1500, 1420),
            (nil, ["10.8.0.2/24"], 1340, 1260), (nil, ["10.8.0.2/24", "fd00::2/64"], 1340, 1280),
            (1300, ["fd00::2/64"], 9000, 1300), (nil, ["10.8.0.2/24"], 50, 68),
        ]
        for (explicit, addresses, physical, expected) in cases {
            let settings = PacketTunnelNetworkSettings(
                addresses: addresses.map(interfaceAddress), mtu: explicit, tunnelOverheadBytes: 80)
            #expect(settings.mtu(physical: physical) == expected)
        }
    }
}
