import ByteAccess
import IPPacket
import Testing

@Suite struct IPHeaderTests {
    @Test func `an IPv4 header says what its bytes say`() throws {
        let packet = CapturedPackets.portUnreachableWithOptionsIPv4
        let header = try IPHeader(parsing: packet.span.octets)
        #expect(header.version == .v4)
        #expect(header.headerLength == 28)
        #expect(header.totalLength == 0x4F)
        #expect(header.trafficClass == 0xC0)
        #expect(header.ecn == .notECT)
        #expect(header.hopLimit == 64)
        #expect(header.protocolNumber == .icmpv4)
        #expect(header.source == .v4(IPv4Address(192, 0, 2, 2)))
        #expect(header.destination == .v4(IPv4Address(192, 0, 2, 1)))
    }

    @Test func `an IPv6 header says what its bytes say`() throws {
        var packet = CapturedPackets.udpWithOptionsIPv6
        packet.replaceSubrange(0..<2, with: [0x6A, 0xBB])
        let header = try IPHeader(parsing: packet.span.octets)
        #expect(header.version == .v6)
        #expect(header.headerLength == 40)
        #expect(header.totalLength == 40 + 0x17)
        #expect(header.trafficClass == 0xAB)
        #expect(header.ecn == .ce)
        #expect(header.hopLimit == 64)
        #expect(header.protocolNumber == .destinationOptions)
        #expect(header.source == (try IPAddress(parsing: "2001:db8::1")))
        #expect(header.destination == (try IPAddress(parsing: "2001:db8::2")))
    }

    @Test(arguments: CapturedPackets.all)
    func `padding is allowed and a missing byte is not`(_ packet: [UInt8]) throws {
        let padded = packet + [UInt8](repeating: 0xAA, count: 16)
        let header = try IPHeader(parsing: padded.span.octets)
        #expect(header.totalLength == packet.count)
        #expect(try header == IPHeader(parsing: packet.span.octets))
        for count in 0..<packet.count {
            #expect(throws: IPPacketError.truncated) { try IPHeader(parsing: packet.span.octets.extracting(..<count)) }
        }
    }

    @Test func `only versions 4 and 6 are IP`() {
        for version in 0..<16 as Range<UInt8> where version != 4 && version != 6 {
            var packet = CapturedPackets.udpIPv4
            packet[0] = version << 4 | 5
            #expect(throws: IPPacketError.unknownVersion) { try IPHeader(parsing: packet.span.octets) }
        }
    }

    @Test func `an IPv4 header has at least 20 bytes and at most what the packet has`() {
        var packet = CapturedPackets.udpIPv4
        for words in 0..<5 as Range<UInt8> {
            packet[0] = 0x40 | words
            #expect(throws: IPPacketError.invalidHeaderLength) { try IPHeader(parsing: packet.span.octets) }
        }
        packet[0] = 0x4F
        #expect(throws: IPPacketError.invalidTotalLength) { try IPHeader(parsing: packet.span.octets) }
        packet[0] = 0x45
        for length in 0..<20 as Range<UInt8> {
            packet[3] = length
            #expect(throws: IPPacketError.invalidTotalLength) { try IPHeader(parsing: packet.span.octets) }
        }
    }

    @Test func `an IPv6 payload length of zero is an empty packet or a jumbogram`() throws {
        var packet = Array(CapturedPackets.udpIPv6[..<40])
        packet.replaceSubrange(4..<7, with: [0, 0, 59])
        #expect(try IPHeader(parsing: packet.span.octets).totalLength == 40)
        packet[6] = 0
        #expect(throws: IPPacketError.jumbogram) { try IPHeader(parsing: packet.span.octets) }
    }

    @Test func `the longest IPv6 packet is read`() throws {
        var packet = [UInt8](repeating: 0, count: 65_575)
        packet.replaceSubrange(..<7, with: [0x60, 0, 0, 0, 0xFF, 0xFF, 59])
        #expect(try IPHeader(parsing: packet.span.octets).totalLength == 65_575)
        packet.removeLast()
        #expect(throws: IPPacketError.truncated) { try IPHeader(parsing: packet.span.octets) }
    }
}
