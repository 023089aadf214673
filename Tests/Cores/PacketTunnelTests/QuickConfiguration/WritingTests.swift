import ByteAccess
import IPPacket
import PacketTunnel
import Testing
import WireGuard

struct WritingTests {
    private static func text(_ configuration: QuickConfiguration) -> String {
        configuration.file().withBytes { bytes in
            String(decoding: bytes.byteOffsets.map { bytes.uint8(at: $0) }, as: UTF8.self)
        }
    }

    @Test func theOrderIsThatOfWgQuickSave() throws {
        #expect(
            try Self.text(ReadingTests.expected()) == """
                [Interface]
                Address = 10.8.0.2/24
                Address = fd00:8::2/64
                Address = 10.9.0.1/32
                DNS = 10.8.0.1
                DNS = fd00:8::1
                DNS = corp.example
                MTU = 1380
                Table = 1234
                SaveConfig = true
                PreUp = echo one %i
                PreUp = echo two; [ a == a ]
                PostUp = iptables -A FORWARD -i %i -j ACCEPT
                PreDown = echo down
                PostDown = echo gone
                ListenPort = 51820
                FwMark = 0xca6c
                PrivateKey = \(SampleKeys.own)

                [Peer]
                PublicKey = \(SampleKeys.peer)
                PresharedKey = \(SampleKeys.preshared)
                AllowedIPs = 192.168.0.0/16, ::/0, 10.8.0.5/32
                Endpoint = [2001:db8::1]:51820
                PersistentKeepalive = 25

                [Peer]
                PublicKey = \(SampleKeys.otherPeer)
                Endpoint = vpn.example.com:1

                """)
    }

    @Test func aWrittenFileReadsAsTheSameConfiguration() throws {
        let configuration = try ReadingTests.expected()
        #expect(try read(Self.text(configuration)) == configuration)
        for table in [QuickConfiguration.RoutingTable.off, .automatic, .number(7)] {
            var small = QuickConfiguration()
            small.table = table
            #expect(try read(Self.text(small)) == small)
        }
    }
}
