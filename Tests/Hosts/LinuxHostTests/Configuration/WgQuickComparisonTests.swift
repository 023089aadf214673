import ByteAccess
import Glibc
import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing
import WireGuard

@testable import LinuxHost

private let own = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
private let first = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="
private let second = "TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0="
private let preshared = "FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE="
private let interface = "[Interface]\nPrivateKey = \(own)\n"
private let peer = "[Peer]\nPublicKey = \(first)\n"

/// Files of wg-quick, read by us and by Debian's wg-quick and wg, with wireguard-go as the device.
struct WgQuickComparisonTests {
    static let everything = """
        [Interface]
        PrivateKey = \(own)
        ListenPort = 51820
        FwMark = 0xCa6c
        Address = 10.8.0.2/24, 10.9.0.1/32
        MTU = 1380
        Table = 1234
        PreUp = echo one %i
        PreUp = echo "two" ; true
        PostUp = echo three # a comment
        PreDown = echo four
        PostDown = echo five
        SaveConfig = true
        [Peer]
        PublicKey = \(first)
        PresharedKey = \(preshared)
        AllowedIPs = 10.8.0.0/24
        Endpoint = [2001:db8::1]:51820
        PersistentKeepalive = 25
        """

    /// Files that mean the same to both.
    static let accepted = [
        everything,
        everything.replacing("\n", with: "\r\n"),
        everything.replacing(" = ", with: "="),
        everything.replacing("Address", with: "ADDRESS").replacing("PublicKey", with: "publickey")
            .replacing("[Peer]", with: "[peer]"),
        everything.replacing("\n", with: "\n \t"),
        "",
        "# nothing\n",
        interface,
        interface + "Address = 10.0.0.1/24 fd00::1/64,10.0.0.2\nAddress = 10.0.0.3\n",
        interface + "DNS = 10.0.0.1,fd00::1 corp.example\nDNS = other.example\nDNS = 10.0.0.2\n",
        interface + "Table = auto\nSaveConfig = False\n",
        interface + "Table = off\nFwMark = OFF\n",
        interface + "[Interface]\nListenPort = 00053\nFwMark = 010\n",
        interface + peer,
        interface + peer + "PersistentKeepalive = OFF\n",
        interface + peer + "AllowedIPs = 10.0.0.0/8,::/0\nAllowedIPs = 192.0.2.7/24 , 192.0.2.200\n",
        interface + peer + "Endpoint = 192.0.2.1:1\n[Peer]\nEndpoint = 127.0.0.1:65535\nPublicKey = \(second)\n",
        interface + peer + "PersistentKeepalive = 0\nPresharedKey = \(String(repeating: "A", count: 43))=\n",
        "[Peer]\nPublicKey = \(second)\nPersistentKeepalive = 65535\n\n" + interface + "PostUp = x = y = z\n",
    ]

    /// Files that both refuse.
    static let refused = [
        "ListenPort = 1\n", "[Interfaces]\nListenPort = 1\n", interface + "Adress = 10.0.0.1/24\n",
        "[Interface]\nEndpoint = 192.0.2.1:1\n",
        peer + "ListenPort = 1\n", peer + "Address = 10.0.0.1\n", "[Peer]\nAllowedIPs = ::/0\n",
        "[Interface]\nPrivateKey = abc\n",
        "[Interface]\nPrivateKey = \(own.dropLast(2))l=\n", "[Interface]\nFwMark = 0x100000000\n",
        "[Interface]\nFwMark = none\n",
        peer + "AllowedIPs = 10.0.0.0/33\n", peer + "AllowedIPs = 10.0.0.0/8,\n",
        peer + "AllowedIPs = 10.0.0.0/8 10.1.0.0/16\n",
        peer + "Endpoint = 192.0.2.1\n", peer + "Endpoint = [2001:db8::1]\n", peer + "PersistentKeepalive = 65536\n",
        peer + "PersistentKeepalive = 25s\n", "[Interface]\nSaveConfig = yes\n", peer + "PresharedKey =\n",
        peer + "AllowedIPs =\n",
    ]

    /// Files that we refuse although wg-quick and wg take them, because they make no sense or are ambiguous.
    static let refusedByUsOnly = [
        // The last one counts, and nobody knows which was meant.
        interface + "ListenPort = 1\nListenPort = 2\n", interface + "MTU = 1400\nMTU = 1300\n",
        // The second section takes the prefixes from the first.
        interface + peer + "AllowedIPs = 10.0.0.0/8\n" + peer + "AllowedIPs = 10.0.0.0/9\n",
        // Beyond 65,535 a port is cut to 16 bits; a service's name depends on the machine.
        "[Interface]\nListenPort = 65537\n", "[Interface]\nListenPort = domain\n",
        // An address and a port that a colon does not tell apart, and brackets around what has no colons.
        peer + "Endpoint = 2001:db8::1:51820\n", peer + "Endpoint = [192.0.2.1]:51820\n",
        // 1.2.3 is taken as 1.2.0.3, and nothing can be sent to port 0.
        peer + "Endpoint = 1.2.3:51820\n", peer + "Endpoint = 192.0.2.1:0\n",
        // White space within a value is removed.
        peer + "AllowedIPs = 10.0. 0.0/8\n", "[Interface]\nPrivateKey = \(own.prefix(20)) \(own.dropFirst(20))\n",
        // These are given to the system later, unless they are empty.
        "[Interface]\nAddress = 10.0.0.300\n", "[Interface]\nMTU = big\n", "[Interface]\nTable = main\n",
        "[Interface]\nDNS = 10.0.0\n",
        "[Interface]\nAddress =\n", "[Interface]\nPostUp =\n", "[Interface]\nPostUp\n",
        "[Interface]\nMTU = 1000\nAddress = fd00::1/64\n",
        // Nobody's key.
        "[Peer]\nPublicKey = \(String(repeating: "A", count: 43))=\n",
    ]

    /// Files that we take although Debian's wg-quick and wg refuse them.
    static let takenByUsOnly = [
        // Some editors put it there.
        "\u{FEFF}" + interface,
        // What newer versions of wg take.
        interface + peer + "AllowedIPs = +10.0.0.0/8, 10.1.0.0/16, -10.0.0.0/8\n",
    ]

    private static func read(_ text: String) throws -> QuickConfiguration {
        try QuickConfiguration(reading: Array(text.utf8).span.octets)
    }

    /// Runs `body` with an interface of wireguard-go in a namespace of its own, and with a folder.
    private func withDevice(_ name: String, _ body: @escaping (_ folder: String) throws -> Void) throws {
        try onThreadOfItsOwn {
            try inNewNetworkNamespace {
                try inTemporaryFolder { folder in
                    try run("bash", "-c", "wireguard-go \(name) >/dev/null 2>&1")
                    defer { try? run("ip", "link", "delete", name) }
                    try body(folder)
                }
            }
        }
    }

    /// True when wg-quick and wg take a file for a device.
    private func isTaken(_ text: String, _ name: String, _ folder: String) throws -> Bool {
        try writeFile(text, to: "\(folder)/\(name).conf", mode: 0o600)
        do {
            try run(
                "bash", "-c",
                "cd \(folder) && wg-quick strip ./\(name).conf >stripped 2>/dev/null && wg setconf \(name) stripped 2>/dev/null"
            )
            return true
        } catch is CommandFailure {
            return false
        }
    }

    @Test func whatBothTakeMakesTheSameDevice() throws {
        try withDevice("cfgtest0") { folder in
            for text in Self.accepted {
                let ours = try Self.read(text).tunnel
                let isTaken = try isTaken(text, "cfgtest0", folder)
                #expect(isTaken, "\(text)")
                try run("bash", "-c", "cd \(folder) && wg showconf cfgtest0 >shown")
                let theirs = try Self.read(try readFile("\(folder)/shown")).tunnel
                #expect(ours.privateKey == theirs.privateKey, "\(text)")
                #expect(ours.listenPort == 0 || ours.listenPort == theirs.listenPort, "\(text)")
                #expect(ours.firewallMark == theirs.firewallMark, "\(text)")
                #expect(Set(ours.peers.map(\.publicKey)) == Set(theirs.peers.map(\.publicKey)), "\(text)")
                for peer in ours.peers {
                    let other = theirs.peers.first { $0.publicKey == peer.publicKey }
                    #expect(peer.presharedKey == other?.presharedKey, "\(text)")
                    #expect(Set(peer.allowedIPs) == Set(other?.allowedIPs ?? []), "\(text)")
                    #expect(peer.endpoint == other?.endpoint, "\(text)")
                    #expect(peer.persistentKeepaliveSeconds == other?.persistentKeepaliveSeconds, "\(text)")
                }
                // What is set on the device is there for the next file unless it is taken away.
                try run("wg", "set", "cfgtest0", "private-key", "/dev/null", "listen-port", "0", "fwmark", "0")
            }
        }
    }

    @Test func whatBothRefuseIsRefused() throws {
        try withDevice("cfgtest1") { folder in
            for text in Self.refused {
                let isTaken = try isTaken(text, "cfgtest1", folder)
                #expect(!isTaken, "\(text)")
                #expect(throws: QuickConfigurationErrors.self, "\(text)") { try Self.read(text) }
            }
            for text in Self.refusedByUsOnly {
                let isTaken = try isTaken(text, "cfgtest1", folder)
                #expect(isTaken, "\(text)")
                #expect(throws: QuickConfigurationErrors.self, "\(text)") { try Self.read(text) }
            }
            for text in Self.takenByUsOnly {
                let isTaken = try isTaken(text, "cfgtest1", folder)
                #expect(!isTaken, "\(text)")
                #expect(throws: Never.self, "\(text)") { try Self.read(text) }
            }
        }
    }

    /// The functions of the script itself tell what it makes of a file.
    @Test func keysThatWgQuickKeepsForItselfMeanTheSame() throws {
        let script = """
            source <(sed '/function override insertion point/,$d' "$(command -v wg-quick)")
            parse_options "$1"
            lines() { local name="$1"; shift; for value in "$@"; do printf '%s=%s\\n' "$name" "$value"; done; }
            lines address "${ADDRESSES[@]}"; lines dns "${DNS[@]}"; lines search "${DNS_SEARCH[@]}"; lines mtu $MTU
            lines table $TABLE; lines save $SAVE_CONFIG; lines preUp "${PRE_UP[@]}"; lines postUp "${POST_UP[@]}"
            lines preDown "${PRE_DOWN[@]}"; lines postDown "${POST_DOWN[@]}"
            """
        try inTemporaryFolder { folder in
            try writeFile(script, to: "\(folder)/script", mode: 0o600)
            for text in Self.accepted {
                try writeFile(text, to: "\(folder)/wg0.conf", mode: 0o600)
                try run("bash", "-c", "bash \(folder)/script \(folder)/wg0.conf >\(folder)/parsed")
                let ours = try Self.read(text)
                var lines: [String] = []
                func add(_ name: String, _ values: [String]) { lines += values.map { "\(name)=\($0)" } }
                // Both spellings of a whole length are one to us.
                add("address", ours.tunnel.addresses.map(\.description))
                add("dns", ours.tunnel.dnsServers.map(\.description))
                add("search", ours.tunnel.searchDomains)
                add("mtu", ours.tunnel.mtu.map { [String($0)] } ?? [])
                switch ours.table {
                case .automatic: add("table", text.contains("Table = auto") ? ["auto"] : [])
                case .off: add("table", ["off"])
                case .number(let number): add("table", [String(number)])
                }
                add("save", [ours.savesConfiguration ? "1" : "0"])
                add("preUp", ours.hooks.preUp)
                add("postUp", ours.hooks.postUp)
                add("preDown", ours.hooks.preDown)
                add("postDown", ours.hooks.postDown)
                let theirs = try readFile("\(folder)/parsed").split(separator: "\n").map { line in
                    guard line.hasPrefix("address="), !line.contains("/") else { return String(line) }
                    return line + (line.contains(":") ? "/128" : "/32")
                }
                #expect(lines == theirs, "\(text)")
            }
        }
    }

    @Test func aFileIsWrittenAsWgQuickSavesIt() throws {
        try withDevice("cfgtest2") { folder in
            let isTaken = try isTaken(Self.everything, "cfgtest2", folder)
            #expect(isTaken)
            // Without a link-local address of its own, which wg-quick would save as well.
            try run("ip", "link", "set", "dev", "cfgtest2", "addrgenmode", "none", "mtu", "1380")
            for address in ["10.8.0.2/24", "10.9.0.1/32"] {
                try run("ip", "address", "add", address, "dev", "cfgtest2")
            }
            try run("ip", "link", "set", "dev", "cfgtest2", "up")
            try run("bash", "-c", "wg-quick save \(folder)/cfgtest2.conf 2>/dev/null")
            let saved = try readFile("\(folder)/cfgtest2.conf")
            let ours = try Self.read(Self.everything).file().withBytes { bytes in
                String(decoding: bytes.byteOffsets.map { bytes.uint8(at: $0) }, as: UTF8.self)
            }
            #expect(saved == ours)
        }
    }
}
