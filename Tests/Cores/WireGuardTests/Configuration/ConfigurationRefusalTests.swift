import Testing

@testable import WireGuard

@Suite("Configuration protocol: what is refused")
struct ConfigurationRefusalTests {
    /// Lines that are refused, and why. A `P:` line stands among a peer's.
    static let refusedLines: [(String, ConfigurationError)] = [
        ("private_key=", .invalidValue), ("private_key=00", .invalidValue),
        ("private_key=" + String(repeating: "g", count: 64), .invalidValue),
        ("private_key=" + String(repeating: "0", count: 63), .invalidValue),
        ("private_key=" + String(repeating: "0", count: 66), .invalidValue),
        ("listen_port=", .invalidValue), ("listen_port=65536", .invalidValue), ("listen_port=-1", .invalidValue),
        ("listen_port=1x", .invalidValue), ("listen_port= 1", .invalidValue), ("listen_port=+1", .invalidValue),
        ("listen_port=0x10", .invalidValue), ("listen_port=99999999999999999999999999", .invalidValue),
        ("fwmark=4294967296", .invalidValue), ("fwmark=-1", .invalidValue), ("fwmark=off", .invalidValue),
        ("replace_peers=false", .invalidValue), ("replace_peers=", .invalidValue),
        ("replace_peers=True", .invalidValue),
        ("public_key=abc", .invalidValue), ("unknown=1", .unknownKey), ("=1", .unknownKey),
        ("PRIVATE_KEY=1", .unknownKey),
        ("preshared_key=\(zeroKey)", .unknownKey), ("allowed_ip=10.0.0.0/8", .unknownKey), ("get=1", .unknownKey),
        ("endpoint=1.2.3.4:5", .unknownKey), ("no equals sign", .malformedLine), (" ", .malformedLine),
        ("P:preshared_key=zz", .invalidValue), ("P:private_key=\(zeroKey)", .unknownKey),
        ("P:listen_port=1", .unknownKey), ("P:replace_peers=true", .unknownKey),
        ("P:remove=false", .invalidValue), ("P:update_only=1", .invalidValue),
        ("P:replace_allowed_ips=yes", .invalidValue),
        ("P:protocol_version=0", .invalidValue), ("P:protocol_version=2", .invalidValue),
        ("P:persistent_keepalive_interval=65536", .invalidValue),
        ("P:persistent_keepalive_interval=off", .invalidValue),
        ("P:persistent_keepalive_interval=-1", .invalidValue), ("P:persistent_keepalive_interval=", .invalidValue),
        ("P:endpoint=", .invalidValue), ("P:endpoint=1.2.3.4", .invalidValue), ("P:endpoint=1.2.3.4:", .invalidValue),
        ("P:endpoint=1.2.3.4:65536", .invalidValue), ("P:endpoint=1.2.3:5", .invalidValue),
        ("P:endpoint=1.2.3.256:5", .invalidValue), ("P:endpoint=host.example:5", .invalidValue),
        ("P:endpoint=::1:5", .invalidValue), ("P:endpoint=[::1]", .invalidValue), ("P:endpoint=[::1:5", .invalidValue),
        ("P:endpoint=[1.2.3.4]:5", .invalidValue), ("P:endpoint=[fe80::1%none]:5", .invalidValue),
        ("P:endpoint=[fe80::1%]:5", .invalidValue), ("P:endpoint=1.2.3.4:5 ", .invalidValue),
        ("P:endpoint=1.2.3.4:+5", .invalidValue),
        ("P:allowed_ip=", .invalidValue), ("P:allowed_ip=10.0.0.0", .invalidValue),
        ("P:allowed_ip=10.0.0.0/", .invalidValue),
        ("P:allowed_ip=10.0.0.0/33", .invalidValue), ("P:allowed_ip=::/129", .invalidValue),
        ("P:allowed_ip=10.0.0.0/-1", .invalidValue), ("P:allowed_ip=10.0.0/8", .invalidValue),
        ("P:allowed_ip=--10.0.0.0/8", .invalidValue), ("P:allowed_ip=-", .invalidValue),
        ("P:allowed_ip=/8", .invalidValue),
        ("P:allowed_ip=10.0.0.0/8/8", .invalidValue), ("P:allowed_ip=10.0.0.0/08x", .invalidValue),
        ("P:set=1", .unknownKey), ("P:bogus=1", .unknownKey), ("P:tx_bytes=1", .unknownKey), ("P:x", .malformedLine),
    ]

    @Test("U4: a bad line is refused by kind, what came before stays, what follows is skipped", arguments: refusedLines)
    func refused(line: String, error: ConfigurationError) {
        let device = ConfiguredDevice()
        let isPeerLine = line.hasPrefix("P:")
        let text = isPeerLine ? "public_key=\(keyA)\n\(line.dropFirst(2))" : line
        #expect(
            device.receive("set=1\nfwmark=42\n\(text)\nfwmark=43\npublic_key=\(keyB)\n\n") == [.reply(.refused(error))])
        #expect(device.device.firewallMark == 42)
        #expect(!device.listing().contains(keyB))
        // The connection goes on.
        #expect(device.receive("set=1\nfwmark=44\n\n") == [.reply(nil)])
        #expect(device.device.firewallMark == 44)
    }

    @Test(
        "U4: lines that tools may write are taken",
        arguments: [
            "endpoint=1.2.3.4:0", "endpoint=[::1]:65535", "endpoint=[fe80::1%2]:5", "endpoint=[fe80::1%wlan0]:5",
            "endpoint=[::ffff:1.2.3.4]:5", "allowed_ip=255.255.255.255/0", "allowed_ip=::1/128", "allowed_ip=-::/0",
            "preshared_key=\(String(repeating: "aB", count: 32))", "persistent_keepalive_interval=00025",
        ])
    func accepted(line: String) {
        let device = ConfiguredDevice()
        #expect(device.receive("set=1\npublic_key=\(keyA)\n\(line)\n\n") == [.reply(nil)])
    }

    @Test("U4: a line that is too long is refused as malformed")
    func overlongLine() {
        let device = ConfiguredDevice()
        device.receive("set=1\nfwmark=1\n")
        #expect(device.receiveOverlongLine() == .reply(.refused(.malformedLine)))
        #expect(device.receive("fwmark=2\n\n").isEmpty, "it is answered already")
        #expect(device.device.firewallMark == 1)
    }

    @Test("U4: a port or mark that the host cannot set ends the operation with its error")
    func hostFailure() {
        let device = ConfiguredDevice()
        device.receive("set=1\nlisten_port=7\n\n")
        device.failure = 98
        #expect(device.receive("set=1\nlisten_port=8\nfwmark=1\n\n") == [.reply(.system(98))])
        #expect(device.requests == [.setListenPort(7), .setListenPort(8)])
        #expect(device.device.listenPort == 7)
    }

    @Test("U5: errors of get and set operations are told apart, because their signs differ")
    func errorsByOperation() {
        let device = ConfiguredDevice()
        #expect(device.receive("get=2\n\n") == [.list(.refused(.invalidValue))])
        #expect(device.receive("get=1\nx=1\n\n") == [.list(.refused(.unknownKey))])
        #expect(device.receive("get=1\nx\n\n") == [.list(.refused(.malformedLine))])
        #expect(device.receive("set=2\n\n") == [.reply(.refused(.invalidValue))])
        #expect(device.receive("nonsense\n\n") == [.reply(.refused(.malformedLine))])
        #expect(device.receive("nonsense=1\n\n") == [.reply(.refused(.unknownKey))])
    }
}
