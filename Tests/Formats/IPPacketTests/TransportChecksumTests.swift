import ByteAccess
import IPPacket
import TestSupport
import Testing

@Suite struct TransportChecksumTests {
    @Test(arguments: CapturedPackets.checksummed)
    func `a captured packet's checksum is valid, and no longer after any bit behind the IP header changes`(
        _ packet: [UInt8]
    ) throws {
        let layout = try PacketLayout(parsing: packet.span.octets)
        #expect(layout.transportChecksum(of: packet.span.octets) == .valid)
        for offset in layout.transportOffset..<min(packet.count, layout.transportOffset + 64) {
            var damaged = packet
            damaged[offset] ^= 0x10
            guard let layout = try? PacketLayout(parsing: damaged.span.octets) else { continue }
            #expect(layout.transportChecksum(of: damaged.span.octets) == .invalid, "\(offset)")
        }
    }

    @Test(arguments: CapturedPackets.checksummed)
    func `writing the checksum restores what the kernel computed`(_ packet: [UInt8]) throws {
        let layout = try PacketLayout(parsing: packet.span.octets)
        let field = try #require(checksumField(layout))
        for garbage in [0x0000, 0xFFFF, 0x1234] as [UInt16] {
            var damaged = packet
            damaged.edit { $0.storeBigEndian(garbage, at: field) }
            #expect(damaged.edit { layout.writeTransportChecksum(in: &$0) })
            #expect(damaged == packet)
        }
    }

    @Test(arguments: CapturedPackets.checksummed)
    func `a partial checksum over the pseudo-header is completed to what the kernel computed`(_ packet: [UInt8]) throws
    {
        let layout = try PacketLayout(parsing: packet.span.octets)
        let field = try #require(checksumField(layout))
        var pseudoHeader: [UInt8] = []
        if layout.transportProtocol != .icmpv4 {
            let addresses = layout.header.version == .v4 ? Array(packet[12..<20]) : Array(packet[8..<40])
            let length = packet.count - layout.transportOffset
            pseudoHeader = addresses + [0, layout.transportProtocol.rawValue, UInt8(length >> 8), UInt8(length & 0xFF)]
        }
        var partial = packet
        partial.edit { $0.storeBigEndian(referenceSum(pseudoHeader), at: field) }
        try partial.edit { bytes in
            try InternetChecksum.complete(
                in: &bytes, start: layout.transportOffset, offset: field - layout.transportOffset)
        }
        #expect(partial == packet)
    }

    @Test func `completing outside of the packet is an error that changes nothing`() {
        let packet = CapturedPackets.udpIPv4
        for (start, offset) in [
            (20, packet.count - 21), (20, packet.count), (packet.count, 0), (packet.count + 1, 0), (-1, 4), (20, -1),
            (.max, 1), (1, .max), (.max, .max), (.min, 0), (0, .min),
        ] {
            var copy = packet
            #expect(throws: IPPacketError.truncated, "\(start), \(offset)") {
                try copy.edit { try InternetChecksum.complete(in: &$0, start: start, offset: offset) }
            }
            #expect(copy == packet)
        }
    }

    @Test func `a UDP checksum that comes to zero is sent as all ones`() throws {
        for packet in [CapturedPackets.udpIPv4, CapturedPackets.udpIPv6] {
            var packet = packet
            let layout = try PacketLayout(parsing: packet.span.octets)
            let field = layout.transportOffset + 6
            // Adding the old checksum to the source port makes the sum all ones, and so its complement zero.
            let old = packet.span.octets.bigEndianUInt16(at: field)
            let port = packet.span.octets.bigEndianUInt16(at: layout.transportOffset)
            let sum = UInt32(port) + UInt32(old)
            packet.edit { $0.storeBigEndian(UInt16(sum & 0xFFFF) + UInt16(sum >> 16), at: layout.transportOffset) }
            #expect(packet.edit { layout.writeTransportChecksum(in: &$0) })
            #expect(packet.span.octets.bigEndianUInt16(at: field) == 0xFFFF)
            #expect(layout.transportChecksum(of: packet.span.octets) == .valid)

            packet.edit { $0.storeBigEndian(0 as UInt16, at: field) }
            let expected: TransportChecksum = layout.header.version == .v4 ? .absent : .invalid
            #expect(layout.transportChecksum(of: packet.span.octets) == expected)
        }
    }

    @Test func `a fragment, another protocol and a source route have no checksum to check`() throws {
        var otherProtocol = CapturedPackets.udpIPv4
        otherProtocol[9] = 132
        // A routing header of type 4 with one segment left, eight bytes of it and one address.
        var sourceRouted = CapturedPackets.udpIPv6
        sourceRouted[6] = 43
        sourceRouted.replaceSubrange(4..<6, with: [0, 0x16 + 24])
        sourceRouted.insert(contentsOf: [17, 2, 4, 1, 0, 0, 0, 0] + [UInt8](repeating: 1, count: 16), at: 40)
        for packet in [
            CapturedPackets.firstFragmentIPv4, CapturedPackets.lastFragmentIPv4, CapturedPackets.firstFragmentIPv6,
            CapturedPackets.lastFragmentIPv6, otherProtocol, sourceRouted,
        ] {
            var packet = packet
            let before = packet
            let layout = try PacketLayout(parsing: packet.span.octets)
            #expect(layout.transportChecksum(of: packet.span.octets) == .notApplicable)
            #expect(!packet.edit { layout.writeTransportChecksum(in: &$0) })
            #expect(packet == before)
        }
    }

    @Test func `a layout used on a shorter packet than its own does nothing`() throws {
        var packet = CapturedPackets.tcpDataIPv4
        let layout = try PacketLayout(parsing: packet.span.octets)
        packet.removeLast()
        #expect(layout.transportChecksum(of: packet.span.octets) == .notApplicable)
        #expect(!packet.edit { layout.writeTransportChecksum(in: &$0) })
    }

    @Test func `bytes of an IP packet behind the UDP datagram are not in its checksum`() throws {
        var packet = CapturedPackets.udpIPv4 + [0xDE, 0xAD, 0xBE, 0xEF]
        packet[3] += 4
        let layout = try PacketLayout(parsing: packet.span.octets)
        #expect(layout.payload == 28..<41)
        #expect(layout.transportChecksum(of: packet.span.octets) == .valid)
    }
}

private func checksumField(_ layout: PacketLayout) -> Int? {
    switch layout.transportProtocol {
    case .tcp: layout.transportOffset + 16
    case .udp: layout.transportOffset + 6
    case .icmpv4, .icmpv6: layout.transportOffset + 2
    default: nil
    }
}
