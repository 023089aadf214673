import ByteAccess
import IPPacket
import TestSupport
import Testing

@Suite struct CongestionMarkingTests {
    /// RFC 6040 §4.2, figure 4: rows are what arrives inside, columns what arrives outside: Not-ECT, ECT(0), ECT(1), CE. A drop
    /// in the figure (Not-ECT with CE) is Not-ECT here, as Linux leaves it to a packet whose ends do not speak ECN.
    static let figure: [(inner: UInt8, outcome: [UInt8])] = [
        (0b00, [0b00, 0b00, 0b00, 0b00]),
        (0b10, [0b10, 0b10, 0b01, 0b11]),
        (0b01, [0b01, 0b01, 0b01, 0b11]),
        (0b11, [0b11, 0b11, 0b11, 0b11]),
    ]

    @Test(arguments: [CapturedPackets.tcpDataIPv4, CapturedPackets.udpWithOptionsIPv4, CapturedPackets.tcpDataIPv6])
    func `decapsulation follows RFC 6040 and keeps everything else`(_ captured: [UInt8]) throws {
        for dscp in 0..<64 as Range<UInt8> {
            for (inner, outcome) in Self.figure {
                for (outer, expected) in zip([0b00, 0b10, 0b01, 0b11] as [UInt8], outcome) {
                    var packet = withTrafficClass(dscp << 2 | inner, captured)
                    let mark = try packet.edit {
                        try ExplicitCongestionNotification.decapsulate(
                            outer: #require(ExplicitCongestionNotification(rawValue: outer)), in: &$0)
                    }
                    #expect(packet == withTrafficClass(dscp << 2 | expected, captured))
                    #expect((mark == .marked) == (inner != expected))
                }
            }
        }
    }

    @Test(arguments: [CapturedPackets.tcpDataIPv4, CapturedPackets.tcpDataIPv6])
    func `a mark says what became of it`(_ captured: [UInt8]) {
        for (inner, expected) in [
            (0, .notECNCapable), (1, .marked), (2, .marked), (3, .unchanged),
        ] as [(UInt8, CongestionMark)] {
            var packet = withTrafficClass(inner, captured)
            #expect(packet.edit { ExplicitCongestionNotification.markCongestionExperienced(in: &$0) } == expected)
            #expect(packet == withTrafficClass(expected == .marked ? 3 : inner, captured))
        }
    }

    @Test func `what is no IP packet is left alone`() {
        for bytes in [
            [], [0x45, 2], Array(CapturedPackets.udpIPv4[..<19]), Array(CapturedPackets.udpIPv6[..<39]),
            [0x52] + [UInt8](repeating: 2, count: 50),
        ] {
            var copy = bytes
            #expect(copy.edit { ExplicitCongestionNotification.markCongestionExperienced(in: &$0) } == .notIP)
            #expect(copy == bytes)
        }
    }

    @Test func `congestion inside does not show outside`() {
        #expect(ExplicitCongestionNotification.notECT.encapsulated == .notECT)
        #expect(ExplicitCongestionNotification.ect0.encapsulated == .ect0)
        #expect(ExplicitCongestionNotification.ect1.encapsulated == .ect1)
        #expect(ExplicitCongestionNotification.ce.encapsulated == .ect0)
    }
}

/// The packet with another traffic class, its IPv4 header checksum summed anew.
private func withTrafficClass(_ trafficClass: UInt8, _ packet: [UInt8]) -> [UInt8] {
    var packet = packet
    if packet[0] >> 4 == 4 {
        packet[1] = trafficClass
        packet.replaceSubrange(10..<12, with: [0, 0])
        let checksum = ~referenceSum(Array(packet[..<(Int(packet[0] & 0xF) * 4)]))
        packet.replaceSubrange(10..<12, with: [UInt8(checksum >> 8), UInt8(checksum & 0xFF)])
    } else {
        packet[0] = 0x60 | trafficClass >> 4
        packet[1] = packet[1] & 0xF | trafficClass << 4
    }
    return packet
}
