import ByteAccess
import PacketTunnel
import Testing

/// Wrong files, each with all that is to be said about it.
struct RefusalTests {
    static let peer = "[Peer]\nPublicKey = \(SampleKeys.peer)\n"

    static let wrongFiles: [(String, [String])] = [
        ("MTU = 1400\nMTU = 1", ["wg0.conf:1: expected [Interface] or [Peer] before the first key"]),
        ("[Per]\nPublicKey = x", ["wg0.conf:1: [Per]: unknown section, did you mean [Peer]?"]),
        ("[Interfaces]", ["wg0.conf:1: [Interfaces]: unknown section, did you mean [Interface]?"]),
        ("[Tunnel]\n", ["wg0.conf:1: unknown section; expected [Interface] or [Peer]"]),
        ("[Interface", ["wg0.conf:1: [Interface]: unknown section, did you mean [Interface]?"]),
        ("[ Interface ]", ["wg0.conf:1: [Interface]: unknown section, did you mean [Interface]?"]),
        ("[Interface]\n\nAdress = 10.0.0.1/24", ["wg0.conf:3: Adress: unknown key, did you mean Address?"]),
        (
            "[Interface]\nColour = blue",
            [
                "wg0.conf:2: unknown key; [Interface] has PrivateKey, ListenPort, FwMark, Address, DNS, MTU, Table, PreUp, "
                    + "PostUp, PreDown, PostDown, SaveConfig"
            ]
        ),
        (
            peer + "Keepalive = 25",
            [
                "wg0.conf:3: unknown key; [Peer] has PublicKey, PresharedKey, AllowedIPs, Endpoint, PersistentKeepalive"
            ]
        ),
        (peer + "AllowedIP = 10.0.0.0/8", ["wg0.conf:3: AllowedIP: unknown key, did you mean AllowedIPs?"]),
        ("[Interface]\nEndpoint = a:1", ["wg0.conf:2: Endpoint: belongs in [Peer], not in [Interface]"]),
        (peer + "ListenPort = 1", ["wg0.conf:3: ListenPort: belongs in [Interface], not in [Peer]"]),
        ("[Interface]\nPostUp", ["wg0.conf:2: expected KEY = VALUE, [Interface] or [Peer]"]),
        ("[Interface]\n= 7", ["wg0.conf:2: expected KEY = VALUE, [Interface] or [Peer]"]),
        (
            "[Interface]\nMTU = 1400\nmtu = 1500\nMTU = 1",
            ["wg0.conf:3: MTU: given twice, first on line 2", "wg0.conf:4: MTU: given twice, first on line 2"]
        ),
        ("[Peer]\nAllowedIPs = ::/0", ["wg0.conf:1: PublicKey: missing from the [Peer] that begins here"]),
        (
            peer + "[Peer]\nPublicKey=\(SampleKeys.peer)",
            ["wg0.conf:4: PublicKey: names the same peer as line 2"]
        ),
        (
            "[Interface]\nPrivateKey = \(SampleKeys.own.dropLast(2))=",
            ["wg0.conf:2: PrivateKey: expected a key of 32 bytes in base64: 44 characters, the last of them \"=\""]
        ),
        (
            // The bits to spare are not zeros.
            "[Interface]\nPrivateKey = \(SampleKeys.own.dropLast(2))l=",
            ["wg0.conf:2: PrivateKey: expected a key of 32 bytes in base64: 44 characters, the last of them \"=\""]
        ),
        (
            "[Interface]\nPrivateKey =",
            ["wg0.conf:2: PrivateKey: expected a key of 32 bytes in base64: 44 characters, the last of them \"=\""]
        ),
        (
            "[Peer]\nPublicKey = \(SampleKeys.peer.replacing("x", with: "-"))",
            ["wg0.conf:2: PublicKey: expected a key of 32 bytes in base64: 44 characters, the last of them \"=\""]
        ),
        (
            "[Peer]\nPublicKey = \(SampleKeys.zeros)",
            ["wg0.conf:2: PublicKey: expected the public key of a peer, not zeros"]
        ),
        (
            peer + "PresharedKey = none",
            ["wg0.conf:3: PresharedKey: expected a key of 32 bytes in base64: 44 characters, the last of them \"=\""]
        ),
        ("[Interface]\nListenPort = 65536", ["wg0.conf:2: ListenPort: expected a port from 0 to 65535"]),
        ("[Interface]\nListenPort = domain", ["wg0.conf:2: ListenPort: expected a port from 0 to 65535"]),
        ("[Interface]\nListenPort = -1", ["wg0.conf:2: ListenPort: expected a port from 0 to 65535"]),
        (
            "[Interface]\nFwMark = 0x100000000",
            ["wg0.conf:2: FwMark: expected \"off\" or a number from 0 to 4294967295, decimal or hexadecimal with 0x"]
        ),
        (
            "[Interface]\nFwMark = 0x",
            ["wg0.conf:2: FwMark: expected \"off\" or a number from 0 to 4294967295, decimal or hexadecimal with 0x"]
        ),
        (
            "[Interface]\nAddress = 10.0.0.1/33",
            ["wg0.conf:2: Address: expected an address and a prefix length such as 10.8.0.2/24 or fd00:8::2/64"]
        ),
        (
            "[Interface]\nAddress = 10.0.0.1/24, fd00::/129",
            [
                "wg0.conf:2: Address: expected an address and a prefix length such as 10.8.0.2/24 or fd00:8::2/64 as item 2"
            ]
        ),
        (
            "[Interface]\nAddress = 10.0.0.1/24,",
            [
                "wg0.conf:2: Address: expected an address and a prefix length such as 10.8.0.2/24 or fd00:8::2/64 as item 2"
            ]
        ),
        (
            "[Interface]\nAddress = 0.0.0.0/0",
            ["wg0.conf:2: Address: expected an address and a prefix length such as 10.8.0.2/24 or fd00:8::2/64"]
        ),
        (
            "[Interface]\nDNS = 10.0.0",
            ["wg0.conf:2: DNS: expected the address of a resolver or a search domain"]
        ),
        (
            "[Interface]\nDNS = 10.0.0.1, -x.example",
            ["wg0.conf:2: DNS: expected the address of a resolver or a search domain as item 2"]
        ),
        ("[Interface]\nDNS =", ["wg0.conf:2: DNS: expected the address of a resolver or a search domain"]),
        ("[Interface]\nMTU = 67", ["wg0.conf:2: MTU: expected a number from 68 to 65535"]),
        ("[Interface]\nMTU = big", ["wg0.conf:2: MTU: expected a number from 68 to 65535"]),
        (
            "[Interface]\nMTU = 1279\nAddress = fd00::1/64",
            ["wg0.conf:2: MTU: expected at least 1280 because the interface has an IPv6 address"]
        ),
        (
            "[Interface]\nTable = main",
            ["wg0.conf:2: Table: expected \"off\", \"auto\" or a number from 1 to 4294967295"]
        ),
        ("[Interface]\nTable = 0", ["wg0.conf:2: Table: expected \"off\", \"auto\" or a number from 1 to 4294967295"]),
        ("[Interface]\nSaveConfig = yes", ["wg0.conf:2: SaveConfig: expected \"true\" or \"false\""]),
        ("[Interface]\nPreUp = # nothing", ["wg0.conf:2: PreUp: expected a command"]),
        (
            "[Interface]\nPostUp = echo \u{7}",
            ["wg0.conf:2: PostUp: expected text in UTF-8 without control characters"]
        ),
        (
            peer + "AllowedIPs =", ["wg0.conf:3: AllowedIPs: expected a prefix such as 10.8.0.0/24 or fd00:8::/64"]
        ),
        (
            peer + "AllowedIPs = 10.0.0.0/8 10.1.0.0/16",
            ["wg0.conf:3: AllowedIPs: expected a prefix such as 10.8.0.0/24 or fd00:8::/64"]
        ),
        (
            peer + "AllowedIPs = 10.0.0.0/8, ten, ::/0",
            ["wg0.conf:3: AllowedIPs: expected a prefix such as 10.8.0.0/24 or fd00:8::/64 as item 2"]
        ),
        (
            peer + "AllowedIPs = 10.0.0.0/8,,::/0",
            ["wg0.conf:3: AllowedIPs: expected a prefix such as 10.8.0.0/24 or fd00:8::/64 as item 2"]
        ),
        (
            peer + "AllowedIPs = 10.0.0.0/8, -10.0.0.0/9",
            ["wg0.conf:3: AllowedIPs: expected a prefix that this peer was given before behind \"-\" as item 2"]
        ),
        (
            peer + "Endpoint = vpn.example.com",
            ["wg0.conf:3: Endpoint: expected HOST:PORT, ADDRESS:PORT or [IPV6ADDRESS]:PORT with a port from 1 to 65535"]
        ),
        (
            peer + "Endpoint = vpn.example.com:0",
            ["wg0.conf:3: Endpoint: expected HOST:PORT, ADDRESS:PORT or [IPV6ADDRESS]:PORT with a port from 1 to 65535"]
        ),
        (
            peer + "Endpoint = 1.2.3:51820",
            ["wg0.conf:3: Endpoint: expected HOST:PORT, ADDRESS:PORT or [IPV6ADDRESS]:PORT with a port from 1 to 65535"]
        ),
        (
            peer + "Endpoint = [vpn.example.com]:51820",
            ["wg0.conf:3: Endpoint: expected HOST:PORT, ADDRESS:PORT or [IPV6ADDRESS]:PORT with a port from 1 to 65535"]
        ),
        (
            peer + "Endpoint = 2001:db8::1:51820",
            ["wg0.conf:3: Endpoint: expected brackets around an IPv6 address, such as [2001:db8::1]:51820"]
        ),
        (
            peer + "PersistentKeepalive = 65536",
            ["wg0.conf:3: PersistentKeepalive: expected \"off\" or a number from 0 to 65535"]
        ),
        (
            peer + "PersistentKeepalive = 25s",
            ["wg0.conf:3: PersistentKeepalive: expected \"off\" or a number from 0 to 65535"]
        ),
        (
            // Everything at once, in the order of the lines although the missing key is noticed last.
            "[Interface]\nMTU = x\n[Peer]\nEndpoint = y\n[Pear]\nz\n[Peer]\nAllowedIPs = q",
            [
                "wg0.conf:2: MTU: expected a number from 68 to 65535",
                "wg0.conf:3: PublicKey: missing from the [Peer] that begins here",
                "wg0.conf:4: Endpoint: expected HOST:PORT, ADDRESS:PORT or [IPV6ADDRESS]:PORT with a port from 1 to 65535",
                "wg0.conf:5: [Pear]: unknown section, did you mean [Peer]?",
                "wg0.conf:7: PublicKey: missing from the [Peer] that begins here",
                "wg0.conf:8: AllowedIPs: expected a prefix such as 10.8.0.0/24 or fd00:8::/64",
            ]
        ),
    ]

    @Test("A wrong file is refused with all that is wrong", arguments: wrongFiles)
    func refusal(_ text: String, _ messages: [String]) throws {
        let errors = #expect(throws: QuickConfigurationErrors.self) { try read(text) }
        #expect(errors?.errors.map { $0.text(file: "wg0.conf") } == messages)
        #expect(errors?.omittedCount == 0)
    }

    @Test func invalidUTF8IsRefusedInCommandsAndPassedOverInComments() throws {
        let good = Array("[Interface]\nPostUp = echo #".utf8) + [0xFF]
        #expect(try QuickConfiguration(reading: good.span.octets).hooks.postUp == ["echo"])
        let bad = Array("[Interface]\nPostUp = echo ".utf8) + [0xFF]
        let errors = #expect(throws: QuickConfigurationErrors.self) { try QuickConfiguration(reading: bad.span.octets) }
        #expect(errors?.errors.map(\.problem) == [.expected(.plainText)])
    }

    @Test func noMoreThanFiftyErrorsAreKept() {
        let errors = #expect(throws: QuickConfigurationErrors.self) {
            try read("[Interface]\n" + String(repeating: "MTU\n", count: 60))
        }
        #expect(errors?.errors.count == 50)
        #expect(errors?.omittedCount == 10)
    }

    @Test(
        "Whatever is wrong around a secret key, none of it is repeated",
        arguments: [
            "[Interface]\nPrivateKey \(SampleKeys.own)",
            "[Interface]\nPrivateKey: \(SampleKeys.own)",
            "[Interface]\n\(SampleKeys.own)",
            "[Interface]\n\(SampleKeys.own) = PrivateKey",
            "[Interface]\nPrivateKey = '\(SampleKeys.own)'",
            "[Interface]\nPrivateKey = \(SampleKeys.own) \(SampleKeys.own)",
            "[Interface]\nPrivateKei = \(SampleKeys.own)",
            "[Interface]\nMTU = \(SampleKeys.own)\nAddress = \(SampleKeys.own)\nListenPort = \(SampleKeys.own)",
            "[\(SampleKeys.own)]",
            "\(SampleKeys.own)",
            "[Peer]\nEndpoint = \(SampleKeys.own)\nAllowedIPs = \(SampleKeys.own)\nPresharedKey = \(SampleKeys.own),",
        ]) func secrecy(_ text: String)
    {
        let errors = #expect(throws: QuickConfigurationErrors.self) { try read(text) }
        let key = Array(SampleKeys.own)
        for error in errors?.errors ?? [] {
            let text = error.text(file: "wg0.conf")
            for start in 0...key.count - 6 {
                #expect(!text.contains(String(key[start..<start + 6])), "\(text)")
            }
        }
    }
}
