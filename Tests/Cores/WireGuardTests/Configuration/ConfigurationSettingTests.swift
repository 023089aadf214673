import TestSupport
import Testing

@testable import WireGuard

@Suite("Configuration protocol: what is set")
struct ConfigurationSettingTests {
    @Test("U1: operations follow one another on a connection, each answered when its empty line comes")
    func pipelined() {
        let device = ConfiguredDevice()
        let text = "get=1\n\nset=1\nfwmark=1\n\nset=1\nbad=1\n\nget=1\n\n\n\nget=1\n\n"
        #expect(
            device.receive(text) == [
                .list(nil), .reply(nil), .reply(.refused(.unknownKey)), .list(nil), .list(nil),
            ])
        #expect(device.device.firewallMark == 1)
    }

    @Test("U2: preshared key, keepalive and allowed IPs are removed by zero, zero and replacement")
    func removals() {
        let device = ConfiguredDevice()
        device.receive(
            """
            set=1
            public_key=\(keyA)
            preshared_key=\(presharedKey)
            persistent_keepalive_interval=65535
            allowed_ip=10.0.0.0/8
            allowed_ip=fd00::/8


            """)
        #expect(device.listing().contains("persistent_keepalive_interval=65535\n"))
        device.receive(
            """
            set=1
            public_key=\(keyA)
            preshared_key=\(zeroKey)
            persistent_keepalive_interval=0
            replace_allowed_ips=true
            allowed_ip=192.0.2.0/24


            """)
        let listing = device.listing()
        #expect(listing.contains("preshared_key=\(zeroKey)\n"))
        #expect(listing.contains("persistent_keepalive_interval=0\nallowed_ip=192.0.2.0/24\n"))
        #expect(!listing.contains("10.0.0.0"))
    }

    @Test("U2: a prefix with a minus is removed, if it is that peer's")
    func allowedIPRemoval() {
        let device = ConfiguredDevice()
        device.receive("set=1\npublic_key=\(keyA)\nallowed_ip=10.0.0.0/8\nallowed_ip=fd00::/8\npublic_key=\(keyB)\n\n")
        #expect(device.receive("set=1\npublic_key=\(keyB)\nallowed_ip=-10.0.0.0/8\n\n") == [.reply(nil)])
        #expect(device.listing().contains("allowed_ip=10.0.0.0/8\n"))
        #expect(device.receive("set=1\npublic_key=\(keyA)\nallowed_ip=-10.0.0.0/8\n\n") == [.reply(nil)])
        #expect(!device.listing().contains("allowed_ip=10.0.0.0/8\n"))
        #expect(device.listing().contains("allowed_ip=fd00::/8\n"))
    }

    @Test("U2: update_only touches no peer that does not exist, remove removes one that does")
    func updateOnlyAndRemove() {
        let device = ConfiguredDevice()
        device.receive("set=1\npublic_key=\(keyA)\nupdate_only=true\nallowed_ip=10.0.0.0/8\n\n")
        #expect(device.listing() == "")
        device.receive("set=1\npublic_key=\(keyA)\nallowed_ip=10.0.0.0/8\n\n")
        device.receive("set=1\npublic_key=\(keyA)\nupdate_only=true\nallowed_ip=11.0.0.0/8\n\n")
        #expect(device.listing().contains("allowed_ip=10.0.0.0/8\nallowed_ip=11.0.0.0/8\n"))
        #expect(device.receive("set=1\npublic_key=\(keyA)\nremove=true\nallowed_ip=12.0.0.0/8\n\n") == [.reply(nil)])
        #expect(device.listing() == "")
        #expect(device.receive("set=1\npublic_key=\(keyA)\nremove=true\n\n") == [.reply(nil)])
        #expect(device.listing() == "")
    }

    @Test("U2: replace_peers removes all that were there before")
    func replacePeers() {
        let device = ConfiguredDevice()
        device.receive("set=1\npublic_key=\(keyA)\npublic_key=\(keyB)\n\n")
        device.receive("set=1\nreplace_peers=true\npublic_key=\(keyC)\n\n")
        #expect(device.listing().hasPrefix("public_key=\(keyC)\n"))
        #expect(!device.listing().contains(keyA) && !device.listing().contains(keyB))
    }

    @Test("U8: a peer with the device's own key is ignored, in either order, and its lines change nothing")
    func ownKey() {
        var generator = SeededGenerator(seed: 3)
        let pair = ReferenceKeyPair(using: &generator)
        func text(_ key: [UInt8]) -> String {
            key.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }
        let device = ConfiguredDevice()
        let answers = device.receive(
            "set=1\nprivate_key=\(text(pair.privateKey))\npublic_key=\(text(pair.publicKey))\nallowed_ip=10.0.0.0/8\n\n"
        )
        #expect(answers == [.reply(nil)])
        #expect(!device.listing().contains("public_key"))
        device.receive("set=1\nprivate_key=\(zeroKey)\npublic_key=\(text(pair.publicKey))\nallowed_ip=10.0.0.0/8\n\n")
        #expect(device.listing().contains("public_key"))
        device.receive("set=1\nprivate_key=\(text(pair.privateKey))\n\n")
        #expect(!device.listing().contains("public_key"))
    }

    @Test(
        "A peer that another connection removes between two lines is neither brought back nor mistaken for another"
    )
    func concurrentRemoval() {
        let device = ConfiguredDevice()
        device.receive("set=1\npublic_key=\(keyA)\nallowed_ip=10.0.0.0/8\n")
        var other = ConfigurationSession()
        for line in ["set=1", "replace_peers=true", "public_key=\(keyB)", ""] {
            _ = other.receive(Array(line.utf8).octets, for: &device.device, at: device.now) { _ in nil }
        }
        #expect(
            device.receive("endpoint=192.0.2.1:9\npersistent_keepalive_interval=5\nallowed_ip=11.0.0.0/8\n\n") == [
                .reply(nil)
            ])
        #expect(
            device.listing() == """
                public_key=\(keyB)
                preshared_key=\(zeroKey)
                protocol_version=1
                last_handshake_time_sec=0
                last_handshake_time_nsec=0
                tx_bytes=0
                rx_bytes=0
                persistent_keepalive_interval=0

                """)
    }
}
