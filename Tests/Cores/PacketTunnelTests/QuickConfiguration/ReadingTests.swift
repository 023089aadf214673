import ByteAccess
import IPPacket
import PacketTunnel
import Provider
import Testing
import WireGuard

/// Text keys of wg(8)'s manual page.
enum SampleKeys {
    static let own = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
    static let peer = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="
    static let otherPeer = "TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0="
    static let preshared = "FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE="
    static let zeros = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
}

/// Reads a file from a string.
func read(_ text: String) throws(QuickConfigurationErrors) -> QuickConfiguration {
    try QuickConfiguration(reading: Array(text.utf8).span.octets)
}

/// The 32 bytes of a key, decoded by the rules of RFC 4648 §4 and by nothing of ours.
func bytes(_ key: String) -> [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let bits = key.dropLast().flatMap { character in
        let value = alphabet.firstIndex(of: character) ?? -1
        return (0..<6).map { value >> (5 - $0) & 1 }
    }
    return (0..<32).map { byte in bits[byte * 8..<byte * 8 + 8].reduce(0) { $0 << 1 | UInt8($1) } }
}

func secretKey(_ text: String) -> SecretKey {
    SecretKey(SecretMemory(copying: bytes(text).span.octets))
}

func publicKey(_ text: String) -> PublicKey {
    PublicKey(bytes(text).span.octets)
}

struct ReadingTests {
    static let everything = """
        # a comment
        [Interface]
        PrivateKey = \(SampleKeys.own)
        ListenPort = 51820
        FwMark = 0xCa6c
        Address = 10.8.0.2/24, fd00:8::2/64
        Address = 10.9.0.1
        DNS = 10.8.0.1, corp.example
        DNS = fd00:8::1
        MTU = 1380
        Table = 1234
        PreUp = echo one %i
        PreUp = echo two; [ a == a ]
        PostUp = iptables -A FORWARD -i %i -j ACCEPT
        PreDown = echo down
        PostDown = echo gone # not this
        SaveConfig = true

        [Peer]
        PublicKey = \(SampleKeys.peer)
        PresharedKey = \(SampleKeys.preshared)
        AllowedIPs = 10.8.0.0/24, +192.168.7.9/16
        AllowedIPs = ::/0, 10.8.0.5, -10.8.0.0/24
        Endpoint = [2001:db8::1]:51820
        PersistentKeepalive = 25
        [Peer]
        Endpoint = vpn.example.com:1
        PersistentKeepalive = off
        PublicKey = \(SampleKeys.otherPeer)
        """

    static func expected() throws -> QuickConfiguration {
        var configuration = QuickConfiguration()
        configuration.tunnel.privateKey = secretKey(SampleKeys.own)
        configuration.tunnel.listenPort = 51820
        configuration.tunnel.firewallMark = 0xCA6C
        configuration.tunnel.addresses = try ["10.8.0.2/24", "fd00:8::2/64", "10.9.0.1/32"].map {
            try InterfaceAddress(parsing: $0)
        }
        configuration.tunnel.dnsServers = try ["10.8.0.1", "fd00:8::1"].map { try IPAddress(parsing: $0) }
        configuration.tunnel.searchDomains = ["corp.example"]
        configuration.tunnel.mtu = 1380
        configuration.table = .number(1234)
        configuration.hooks.preUp = ["echo one %i", "echo two; [ a == a ]"]
        configuration.hooks.postUp = ["iptables -A FORWARD -i %i -j ACCEPT"]
        configuration.hooks.preDown = ["echo down"]
        configuration.hooks.postDown = ["echo gone"]
        configuration.savesConfiguration = true
        var first = PeerConfiguration(publicKey: publicKey(SampleKeys.peer))
        first.presharedKey = secretKey(SampleKeys.preshared)
        first.allowedIPs = try ["192.168.0.0/16", "::/0", "10.8.0.5/32"].map { try IPPrefix(parsing: $0) }
        first.endpoint = EndpointName(host: "2001:db8::1", port: 51820)
        first.persistentKeepaliveSeconds = 25
        var second = PeerConfiguration(publicKey: publicKey(SampleKeys.otherPeer))
        second.endpoint = EndpointName(host: "vpn.example.com", port: 1)
        configuration.tunnel.peers = [first, second]
        return configuration
    }

    @Test func everyKeyIsRead() throws {
        #expect(try read(Self.everything) == Self.expected())
    }

    @Test(
        "How a file is laid out does not matter",
        arguments: [
            everything + "\n",
            everything.replacing("\n", with: "\r\n"),
            "\u{FEFF}" + everything,
            "\u{FEFF}\r\n\r\n" + everything.replacing("\n", with: "\r\n") + "\r\n\r\n",
            everything.replacing("\n", with: " \t\r\n\t  "),
            everything.replacing(" = ", with: "="),
            everything.replacing(" = ", with: "\t =\u{0B}\u{0C} "),
            everything.replacing("ListenPort", with: "LISTENPORT").replacing("AllowedIPs", with: "allowedips")
                .replacing("[Peer]", with: "[pEER]").replacing("[Interface]", with: "[INTERFACE]"),
            everything.replacing("SaveConfig = true", with: "SaveConfig = TRUE # yes")
                .replacing("Keepalive = off", with: "Keepalive = Off"),
            everything.replacing("\n", with: "\n#\n \n\n"),
            everything.replacing("10.8.0.2/24, fd00", with: "  10.8.0.2/24,fd00"),
            everything.replacing("10.8.0.2/24, fd00", with: "10.8.0.2/24 fd00"),
            everything.replacing("0xCa6c", with: "51820"),
        ].map { $0.replacing("FwMark = 51820", with: "FwMark = 51820 # \u{E9}") })
    func layout(_ text: String) throws {
        var expected = try Self.expected()
        if text.contains("51820 # \u{E9}") { expected.tunnel.firewallMark = 51820 }
        #expect(try read(text) == expected)
    }

    @Test func emptyFilesAndSectionsAreATunnelWithoutAnything() throws {
        #expect(try read("") == QuickConfiguration())
        #expect(try read("[Interface]") == QuickConfiguration())
        #expect(try read("[Interface]\n[Interface]\nMTU=1400").tunnel.mtu == 1400)
    }

    @Test("Ports reach to their limits", arguments: [("0", 0), ("65535", 65535), ("0053", 53)] as [(String, UInt16)])
    func ports(_ text: String, _ port: UInt16) throws {
        #expect(try read("[Interface]\nListenPort = \(text)").tunnel.listenPort == port)
    }

    @Test(
        "A firewall mark of nothing is none",
        arguments: [
            ("off", nil), ("OFF", nil), ("0", nil), ("0x0", nil), ("0xffffffff", UInt32.max), ("4294967295", .max),
            ("0X10", 16), ("010", 10),
        ] as [(String, UInt32?)]) func marks(_ text: String, _ mark: UInt32?) throws
    {
        #expect(try read("[Interface]\nFwMark=\(text)").tunnel.firewallMark == mark)
    }

    @Test(
        "Tables are words or numbers",
        arguments: [
            ("off", .off), ("auto", .automatic), ("1", .number(1)), ("0x10", .number(16)),
            ("4294967295", .number(.max)),
        ] as [(String, QuickConfiguration.RoutingTable)])
    func tables(_ text: String, _ table: QuickConfiguration.RoutingTable) throws {
        #expect(try read("[Interface]\nTable = \(text)").table == table)
    }

    @Test(
        "Endpoints are names and addresses",
        arguments: [
            ("192.0.2.1:51820", "192.0.2.1", 51820), ("[2001:DB8::1]:1", "2001:DB8::1", 1),
            ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535), ("a-b_c.example:51820", "a-b_c.example", 51820),
            ("localhost:9", "localhost", 9), ("example.com.:9", "example.com.", 9),
            ("[::ffff:192.0.2.1]:9", "::ffff:192.0.2.1", 9),
        ] as [(String, String, UInt16)]) func endpoints(_ text: String, _ host: String, _ port: UInt16) throws
    {
        let file = "[Peer]\nPublicKey=\(SampleKeys.peer)\nEndpoint=\(text)"
        #expect(try read(file).tunnel.peers.first?.endpoint == EndpointName(host: host, port: port))
    }

    @Test func keysOfZerosStandForNone() throws {
        let configuration = try read(
            """
            [Interface]
            PrivateKey = \(SampleKeys.zeros)
            [Peer]
            PublicKey = \(SampleKeys.peer)
            PresharedKey = \(SampleKeys.zeros)
            """)
        #expect(configuration.tunnel.privateKey == nil)
        #expect(configuration.tunnel.peers.first?.presharedKey == nil)
        #expect(configuration.tunnel.peers.count == 1)
    }

    @Test func hooksNameTheirInterface() {
        let text = "ip route add %%i dev %i%i table 100% %"
        #expect(
            QuickConfiguration.Hooks.expanded(text, interfaceName: "wg0") == "ip route add %wg0 dev wg0wg0 table 100% %"
        )
    }
}
