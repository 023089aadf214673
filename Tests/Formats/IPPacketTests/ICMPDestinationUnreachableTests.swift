import ByteAccess
import IPPacket
import TestSupport
import Testing

@Suite struct ICMPDestinationUnreachableTests {
    /// Behind the IP header everything is decided by the RFCs, so that it must be what Linux sent.
    @Test(arguments: [
        (CapturedPackets.udpIPv4, CapturedPackets.portUnreachableIPv4, 20),
        (CapturedPackets.udpWithOptionsIPv4, CapturedPackets.portUnreachableWithOptionsIPv4, 28),
        (CapturedPackets.udpIPv6, CapturedPackets.portUnreachableIPv6, 40),
        (CapturedPackets.udpWithOptionsIPv6, CapturedPackets.portUnreachableWithOptionsIPv6, 40),
    ])
    func `an error is what Linux sends, byte for byte`(_ packet: [UInt8], _ answer: [UInt8], _ headerLength: Int) throws
    {
        let ours = try #require(unreachable(packet, .port))
        let isIPv4 = packet[0] >> 4 == 4
        #expect(ours[(isIPv4 ? 20 : 40)...] == answer[headerLength...])
        #expect(ours[(isIPv4 ? 12..<20 : 8..<40)] == answer[isIPv4 ? 12..<20 : 8..<40])
        let header = try IPHeader(parsing: ours.span.octets)
        #expect(header.trafficClass == (isIPv4 ? 0xC0 : 0))
        #expect(header.hopLimit == 64)
        #expect(header.totalLength == ours.count)
    }

    @Test func `an error about a long packet is as long and has the checksum of what Linux sends`() throws {
        for (packet, answer) in [
            (CapturedPackets.longUDPIPv4, CapturedPackets.longPortUnreachableIPv4),
            (CapturedPackets.longUDPIPv6, CapturedPackets.longPortUnreachableIPv6),
        ] {
            let ours = try #require(unreachable(packet, .port))
            let icmp = answer.start.count - 8
            #expect(ours.count == answer.1)
            #expect(ours[icmp..<icmp + 8] == answer.start[icmp...])
            #expect(ours[(icmp + 8)...] == packet[..<(ours.count - icmp - 8)])
        }
    }

    @Test(
        arguments: [
            (.noRoute, [3, 0], [1, 0], 0), (.host, [3, 1], [1, 3], 0), (.port, [3, 3], [1, 4], 0),
            (.administrativelyProhibited, [3, 13], [1, 1], 0), (.packetTooBig(mtu: 1280), [3, 4], [2, 0], 1280),
        ] as [(ICMPDestinationUnreachable.Reason, [UInt8], [UInt8], UInt32)])
    func `reasons have the types and codes of RFC 792, 1812 and 4443`(
        _ reason: ICMPDestinationUnreachable.Reason, _ ipv4: [UInt8], _ ipv6: [UInt8], _ mtu: UInt32
    ) throws {
        for (packet, icmp, typeAndCode) in [
            (CapturedPackets.tcpDataIPv4, 20, ipv4), (CapturedPackets.tcpDataIPv6, 40, ipv6),
        ] {
            let answer = try #require(unreachable(packet, reason))
            #expect(Array(answer[icmp..<icmp + 2]) == typeAndCode)
            #expect(answer.span.octets.bigEndianUInt32(at: icmp + 4) == mtu)
            let layout = try PacketLayout(parsing: answer.span.octets)
            #expect(layout.transportChecksum(of: answer.span.octets) == .valid)
            let original = try IPHeader(parsing: packet.span.octets)
            #expect(layout.header.source == original.destination)
            #expect(layout.header.destination == original.source)
        }
    }

    @Test func `an IPv4 packet that may be fragmented is not too big`() {
        var packet = CapturedPackets.tcpDataIPv4
        packet[6] = 0
        #expect(unreachable(packet, .packetTooBig(mtu: 1280)) == nil)
        #expect(unreachable(packet, .host) != nil)
    }

    @Test func `padding behind the packet is not quoted`() {
        for packet in [CapturedPackets.udpIPv4, CapturedPackets.udpIPv6] {
            #expect(unreachable(packet + [1, 2, 3], .host) == unreachable(packet, .host))
        }
    }

    @Test(arguments: [
        CapturedPackets.portUnreachableIPv4, CapturedPackets.portUnreachableWithOptionsIPv4,
        CapturedPackets.portUnreachableIPv6, CapturedPackets.lastFragmentIPv4, CapturedPackets.lastFragmentIPv6,
        CapturedPackets.listenerReportIPv6, CapturedPackets.neighborSolicitationIPv6,
    ])
    func `an ICMP error, a later fragment and a multicast packet are not answered`(_ packet: [UInt8]) {
        #expect(unreachable(packet, .host) == nil)
    }

    @Test(arguments: [
        CapturedPackets.firstFragmentIPv4, CapturedPackets.firstFragmentIPv6, CapturedPackets.echoRequestIPv4,
        CapturedPackets.echoReplyIPv4, CapturedPackets.echoRequestIPv6, CapturedPackets.echoReplyIPv6,
    ])
    func `a first fragment and an echo are answered`(_ packet: [UInt8]) {
        #expect(unreachable(packet, .host) != nil)
    }

    @Test func `no type of ICMP but the queries is answered`() {
        for type in 0...255 as ClosedRange<UInt8> {
            var ipv4 = CapturedPackets.echoRequestIPv4
            ipv4[20] = type
            #expect(
                (unreachable(ipv4, .host) != nil) == [0, 8, 9, 10, 13, 14, 15, 16, 17, 18].contains(type), "\(type)")
            var ipv6 = CapturedPackets.echoRequestIPv6
            ipv6[40] = type
            #expect((unreachable(ipv6, .host) != nil) == (type >= 128 && type != 137), "\(type)")
        }
    }

    @Test func `addresses that name no single host are neither answered nor answered from`() throws {
        for address in [
            "0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.0.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255",
        ] {
            for offset in [12, 16] {
                var packet = CapturedPackets.udpIPv4
                try packet.edit { try $0.store(IPv4Address(parsing: address), at: offset) }
                #expect(unreachable(packet, .host) == nil, "\(address)")
            }
        }
        for address in ["::", "::1", "ff02::1", "ff0e::1:2"] {
            for offset in [8, 24] {
                var packet = CapturedPackets.udpIPv6
                try packet.edit { try $0.store(IPv6Address(parsing: address), at: offset) }
                #expect(unreachable(packet, .host) == nil, "\(address)")
            }
        }
    }

    @Test func `a small output takes a shorter quote, down to eight bytes behind the header`() throws {
        for (packet, overhead, least) in [
            (CapturedPackets.udpWithOptionsIPv4, 28, 36), (CapturedPackets.udpIPv6, 48, 48),
            (CapturedPackets.longUDPIPv4, 28, 28),
        ] {
            for size in 0...packet.count + overhead {
                let answer = unreachable(packet, .host, outputSize: size)
                guard size >= overhead + least else {
                    #expect(answer == nil, "\(size)")
                    continue
                }
                let written = try #require(answer)
                #expect(written.count == min(size, packet.count + overhead, packet[0] >> 4 == 4 ? 576 : 1280))
                let layout = try PacketLayout(parsing: written.span.octets)
                #expect(layout.transportChecksum(of: written.span.octets) == .valid)
            }
        }
    }

    @Test func `a refusal writes nothing`() {
        let packet = CapturedPackets.lastFragmentIPv4
        var output = [UInt8](repeating: 0x5A, count: 1280)
        let length = output.edit { ICMPDestinationUnreachable.write(for: packet.span.octets, reason: .host, into: &$0) }
        #expect(length == nil)
        #expect(output.allSatisfy { $0 == 0x5A })
    }
}

private func unreachable(
    _ packet: [UInt8], _ reason: ICMPDestinationUnreachable.Reason, outputSize: Int = 1280
) -> [UInt8]? {
    // What was in the output before must not matter.
    var output = [UInt8](repeating: 0xA5, count: outputSize)
    let length = output.edit { ICMPDestinationUnreachable.write(for: packet.span.octets, reason: reason, into: &$0) }
    return length.map { Array(output[..<$0]) }
}
