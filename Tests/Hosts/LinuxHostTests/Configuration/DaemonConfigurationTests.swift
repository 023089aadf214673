import DNSProxy
import Glibc
import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing

@testable import LinuxHost

struct DaemonConfigurationTests {
    /// Reads a configuration from a string; `FOLDER` in it stands for a folder with the wg-quick file `wg0.conf`.
    private func read(_ text: String, quick: String = "[Interface]\n") throws -> LoadedConfiguration {
        try inTemporaryFolder { folder in
            try writeFile(quick, to: "\(folder)/wg0.conf", mode: 0o600)
            try writeFile(text.replacing("FOLDER", with: folder), to: "\(folder)/sluice.json5", mode: 0o644)
            return try LoadedConfiguration.read("\(folder)/sluice.json5")
        }
    }

    @Test func anEmptyConfigurationIsAllDefaults() throws {
        let configuration = try read("{}")
        #expect(configuration.value == DaemonConfiguration())
        #expect(configuration.unsupportedParts.isEmpty)
        #expect(configuration.value.interfaceName == nil)
        #expect(configuration.value.offloads == Offloads(tun: true, udpSegment: true, udpGRO: true))
        #expect(configuration.value.log.level == .info && !configuration.value.log.showsPrivate)
        #expect(configuration.value.controlSocket == "/run/sluice/control.sock")
    }

    @Test func theDeviceIsNamedByItsKeyThenByTheTunnelsFileThenByDefault() throws {
        let tunnel = "tunnel: { config: 'FOLDER/wg0.conf' }"
        #expect(try read("{ \(tunnel) }").value.interfaceName?.string == "wg0")
        #expect(try read("{ \(tunnel), device: {} }").value.interfaceName?.string == "wg0")
        #expect(try read("{ \(tunnel), device: { name: 'tun7' } }").value.interfaceName?.string == "tun7")
        #expect(try read("{ device: {} }").value.interfaceName?.string == "sluice0")
    }

    @Test func everyKeyOfTheDeviceIsRead() throws {
        let configuration = try read(
            """
            { device: { name: "sluice0", addresses: ["10.8.0.2/24", "fd00:8::2/64"], mtu: 1.42e3,
                includedRoutes: ["0.0.0.0/0", "::/0"], excludedRoutes: ["192.168.0.0/16"] },
              offloads: { tun: false, udpSegment: false, udpGRO: true }, log: { level: 'debug', showPrivate: true },
              control: { socket: '/tmp/x' }, metrics: { listen: ['127.0.0.1:9153', '[::1]:9153'] } }
            """)
        #expect(configuration.value.metrics.listen.map(\.description) == ["127.0.0.1:9153", "[::1]:9153"])
        var device = DeviceConfiguration()
        device.name = try InterfaceName("sluice0")
        device.addresses = [
            try InterfaceAddress(parsing: "10.8.0.2/24"), try InterfaceAddress(parsing: "fd00:8::2/64"),
        ]
        device.mtu = 1420
        device.includedRoutes = [try IPPrefix(parsing: "0.0.0.0/0"), try IPPrefix(parsing: "::/0")]
        device.excludedRoutes = [try IPPrefix(parsing: "192.168.0.0/16")]
        #expect(configuration.value.device == device)
        #expect(configuration.value.offloads == Offloads(tun: false, udpSegment: false, udpGRO: true))
        #expect(configuration.value.log.level == .debug && configuration.value.log.showsPrivate)
        #expect(configuration.value.controlSocket == "/tmp/x")
    }

    @Test func theTunnelsFileIsRead() throws {
        let tunnel = try read(
            "{ tunnel: { config: 'FOLDER/wg0.conf' } }", quick: "[Interface]\nMTU = 1300\nPostUp = x\n"
        ).value.tunnel
        #expect(tunnel?.quick.tunnel.mtu == 1300)
        #expect(tunnel?.quick.hooks.postUp == ["x"])
        #expect(tunnel?.path.hasSuffix("/wg0.conf") == true)
    }

    @Test func aTunnelsFileThatOthersCanReadIsRefusedWithWhatToDo() throws {
        try inTemporaryFolder { folder in
            try writeFile("[Interface]\n", to: "\(folder)/wg0.conf", mode: 0o644)
            try writeFile("{ tunnel: { config: '\(folder)/wg0.conf' } }", to: "\(folder)/a.json5", mode: 0o644)
            let errors = #expect(throws: ConfigurationErrors.self) { try LoadedConfiguration.read("\(folder)/a.json5") }
            #expect(
                errors?.lines == [
                    "\(folder)/a.json5:1: tunnel.config: \(folder)/wg0.conf holds secrets and is open to others (mode 0644); "
                        + "chmod 600 closes it"
                ])
        }
    }

    @Test func aTunnelsFileNeedsANameThatAnInterfaceCanHave() throws {
        try inTemporaryFolder { folder in
            try writeFile("[Interface]\n", to: "\(folder)/tunnel", mode: 0o600)
            try writeFile("{ tunnel: { config: '\(folder)/tunnel' } }", to: "\(folder)/a.json5", mode: 0o644)
            let errors = #expect(throws: ConfigurationErrors.self) { try LoadedConfiguration.read("\(folder)/a.json5") }
            #expect(errors?.errors.map(\.key) == ["tunnel.config"])
            let named = "{ device: { name: 'x' }, tunnel: { config: '\(folder)/tunnel' } }"
            try writeFile(named, to: "\(folder)/a.json5", mode: 0o644)
            #expect(try LoadedConfiguration.read("\(folder)/a.json5").value.interfaceName?.string == "x")
        }
    }

    @Test func everyKeyOfDNSIsRead() throws {
        let dns = try read(
            """
            { dns: {
                listen: ["127.0.0.1:53", "[::1]:5353"],
                upstreams: [
                  { name: "main", url: "HTTPS://DNS.Example/dns-query{?dns}", addresses: ["192.0.2.1", "2001:db8::1"],
                    pins: ["sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
                           "sha256/ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="],
                    pinOnly: true, caFile: "FOLDER/wg0.conf", method: "get" },
                  { name: "corp", url: "tls://[2001:db8::53]", serverName: "DNS.corp.example." },
                  { name: "plain", url: "udp://192.0.2.3" }, { name: "tcp", url: "tcp://dns.example:5300" },
                ],
                bootstrap: ["192.0.2.53", "2001:db8::1", "[2001:db8::2]:54"],
                routes: [ { domains: ["Corp.Example."], upstreams: ["corp", "main"], strategy: "parallel" } ],
                strategy: "fastest",
                timeoutSeconds: 2.5, clientIdleSeconds: 0x10, mixCase: true, trustAD: ["corp"], dns64: "64:ff9b::/96",
                rebinding: "allow", system: true, queryLog: "full", cache: { maxBytes: 0, staleSeconds: 0, minTTL: 5, maxTTL: 60,
                prefetch: true } } }
            """
        ).value.dns
        #expect(dns?.listen.map(\.description) == ["127.0.0.1:53", "[::1]:5353"])
        #expect(dns?.bootstrap.map(\.description) == ["192.0.2.53:53", "[2001:db8::1]:53", "[2001:db8::2]:54"])
        #expect(dns?.upstreams.map(\.name) == ["main", "corp", "plain", "tcp"])
        #expect(dns?.upstreams.map(\.transport) == [.https(path: "/dns-query", method: .get), .tls, .udp, .tcp])
        #expect(dns?.upstreams.map(\.port) == [443, 853, 53, 5300])
        #expect(
            dns?.upstreams.map(\.host) == [
                .name("dns.example"), .address(try IPAddress(parsing: "2001:db8::53")),
                .address(try IPAddress(parsing: "192.0.2.3")), .name("dns.example"),
            ])
        let main = dns?.upstreams.first
        #expect(main?.addresses.map(\.description) == ["192.0.2.1", "2001:db8::1"])
        #expect(main?.trust.pins.map(\.sha256) == [Array(0..<32), Array(32..<64)])
        #expect(main?.trust.isPinOnly == true && main?.trust.authorityFile?.hasSuffix("wg0.conf") == true)
        #expect(dns?.upstreams[1].trust.serverName == "dns.corp.example")
        let route = DNSConfiguration.Route(
            domains: ["corp.example"], upstreams: ["corp", "main"], strategy: .parallel)
        #expect(dns?.routes == [route] && dns?.strategy == .fastest && dns?.prefetches == true)
        #expect(dns?.timeout == .milliseconds(2500) && dns?.clientIdle == .seconds(16))
        #expect(dns?.mixesCase == true && dns?.trustedForAD == ["corp"] && dns?.rebinding == .allow)
        #expect(dns?.dns64 == .prefix(try IPPrefix(parsing: "64:ff9b::/96")))
        #expect(dns?.setsSystemResolver == true && dns?.cacheMaxBytes == 0)
        #expect(dns?.queryLog == .full && DNSConfiguration().queryLog == .private)
        #expect(dns?.staleLimit == .seconds(0) && dns?.timeToLiveBounds == 5...60)
    }

    @Test func whatIsTakenOutOfAnswersAndQueriesIsRead() throws {
        let value = try read(
            """
            { dns: { upstreams: [{ name: "a", url: "udp://192.0.2.1" }], ipv6: "block", clientSubnet: "pass",
                     https: { ech: "remove", removeALPN: ["h3", "doq"], hints: "remove" } },
              rules: { inline: ["||ads.example^", "198.51.100.0/24", "@@||2001:db8::1^"] } }
            """
        ).value
        let dns = value.dns
        #expect(dns?.rewriting.removesECH == true && dns?.rewriting.removesHints == true)
        #expect(dns?.rewriting.removedProtocols == ["h3", "doq"] && dns?.rewriting.blocksIPv6 == true)
        #expect(dns?.passesClientSubnet == true)
        #expect(value.rules?.inline == [try NameRule(parsing: "||ads.example^")])
        #expect(value.rules?.inlineAddresses.map(\.prefix.description) == ["198.51.100.0/24", "2001:db8::1/128"])
        #expect(value.rules?.inlineAddresses.map(\.action) == [.block, .allow])
        let plain = try read(
            "{ dns: { upstreams: [{ name: 'a', url: 'udp://192.0.2.1' }], ipv6: 'allow', https: {} } }")
        #expect(plain.value.dns?.rewriting == AnswerRewriting() && plain.value.dns?.passesClientSubnet == false)
    }

    @Test func proxiesAndTheirAppsAreRead() throws {
        let value = try read(
            """
            { proxies: [ { name: "a", url: "socks5://127.0.0.1", credentials: "FOLDER/wg0.conf" },
                         { name: "b", url: "https://Proxy.example/", serverName: "x.example" },
                         { name: "c", url: "http://[::1]:3128" } ],
              apps: [ { match: { uid: 1001, cgroup: "/a.slice/b", executable: "/bin/sh" }, via: "b" }, { match: {}, via: "drop" } ] }
            """
        ).value
        #expect(value.proxies.map(\.kind) == [.socks5, .https, .http])
        #expect(value.proxies.map(\.port) == [1080, 443, 3128])
        #expect(value.proxies.map { $0.credentialsFile != nil } == [true, false, false])
        #expect(value.proxies[1].trust.serverName == "x.example")
        var app = AppRuleConfiguration(via: .proxy("b"))
        app.userID = 1001
        app.controlGroup = "/a.slice/b"
        app.executable = "/bin/sh"
        #expect(value.apps == [app, AppRuleConfiguration(via: .drop)])
    }

    @Test func whatIsNotSupportedYetIsNamedWithItsLine() throws {
        let configuration = try read("{\n apps: [],\n proxies: [],\n filter: {},\n rules: {},\n log: {} }")
        let lines = configuration.unsupportedParts.map { $0.description.drop { $0 != ":" } }
        #expect(
            lines == [
                ":2: \"apps\" is not supported yet", ":3: \"proxies\" is not supported yet",
                ":4: \"filter\" is not supported yet", ":5: \"rules\" is not supported yet",
            ])
    }
}
