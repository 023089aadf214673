import ByteAccess
import IPPacket
import TestSupport
import Testing

@Suite struct ExtensionHeaderTests {
    @Test func `every kind of extension header is stepped over`() throws {
        let packet = ipv6(
            headers: [
                (0, [0, 0, 5, 2, 0, 0, 1, 0]),  // hop-by-hop: router alert
                (60, [0, 1] + [UInt8](repeating: 0, count: 14)),
                (43, [0, 2, 4, 0] + [UInt8](repeating: 0, count: 20)),
                (44, [0, 0, 0, 0, 1, 2, 3, 4]),
                (51, [0, 4] + [UInt8](repeating: 0, count: 22)),  // authentication header: (4 + 2) × 4 bytes
                (60, [0, 0, 1, 4, 0, 0, 0, 0]),
            ], upperLayer: 17, payload: hex("9c40 0009 0008 0000"))
        let view = try IPv6PacketView(checking: packet.span.octets)
        #expect(view.upperLayerProtocol == .udp)
        #expect(view.upperLayerOffset == 40 + 8 + 16 + 24 + 8 + 24 + 8)
        #expect(view.fragmentIdentification == 0x0102_0304)
        let isWhole = view.fragment.isWhole
        #expect(isWhole)
        let hasSegmentsLeft = view.hasSegmentsLeft
        #expect(!hasSegmentsLeft)
        #expect(view.extensionHeaders.byteCount == 88)
        #expect(view.payload.byteCount == 8)
    }

    @Test func `a captured report is behind its hop-by-hop header`() throws {
        let packet = CapturedPackets.listenerReportIPv6
        let view = try IPv6PacketView(checking: packet.span.octets)
        #expect(view.upperLayerProtocol == .icmpv6)
        #expect(view.upperLayerOffset == 48)
        #expect(view.flowLabel == 0)
        let labelled = CapturedPackets.udpIPv6
        let flowLabel = try IPv6PacketView(checking: labelled.span.octets).flowLabel
        #expect(flowLabel == 0xB_C264)
    }

    @Test func `a chain longer than the bound is refused and one as long is not`() {
        let header: (UInt8, [UInt8]) = (60, [0, 0, 1, 4, 0, 0, 0, 0])
        for count in [0, 1, 8, 9, 10, 1_000] {
            let packet = ipv6(headers: Array(repeating: header, count: count), upperLayer: 59, payload: [])
            if count <= 8 {
                #expect(throws: Never.self) { _ = try IPv6PacketView(checking: packet.span.octets) }
            } else {
                #expect(throws: IPPacketError.tooManyExtensionHeaders) {
                    _ = try IPv6PacketView(checking: packet.span.octets)
                }
            }
        }
    }

    @Test func `headers out of place are refused`() {
        let destinationOptions: (UInt8, [UInt8]) = (60, [0, 0, 1, 4, 0, 0, 0, 0])
        let hopByHop: (UInt8, [UInt8]) = (0, [0, 0, 1, 4, 0, 0, 0, 0])
        let fragment: (UInt8, [UInt8]) = (44, [0, 0, 0, 0, 0, 0, 0, 1])
        for headers in [[destinationOptions, hopByHop], [hopByHop, hopByHop], [fragment, fragment]] {
            let packet = ipv6(headers: headers, upperLayer: 59, payload: [])
            #expect(throws: IPPacketError.misplacedExtensionHeader) {
                _ = try IPv6PacketView(checking: packet.span.octets)
            }
        }
    }

    @Test func `a header that reaches beyond the packet is refused`() {
        for kind in [0, 43, 51, 60] as [UInt8] {
            let packet = ipv6(headers: [(kind, [0, 255, 1, 4, 0, 0, 0, 0])], upperLayer: 59, payload: [0, 0, 0, 0])
            #expect(throws: IPPacketError.truncated) { _ = try IPv6PacketView(checking: packet.span.octets) }
        }
        let cut = ipv6(headers: [(60, [0, 0, 1, 4])], upperLayer: 59, payload: [])
        #expect(throws: IPPacketError.truncated) { _ = try IPv6PacketView(checking: cut.span.octets) }
        let short = ipv6(headers: [(51, [0, 0, 0, 0, 0, 0, 0, 0])], upperLayer: 59, payload: [])
        #expect(throws: IPPacketError.invalidHeaderLength) { _ = try IPv6PacketView(checking: short.span.octets) }
    }

    @Test func `a later fragment is not searched for headers it does not have`() throws {
        let packet = ipv6(headers: [(44, [0, 0, 0x05, 0xA9, 0, 0, 0, 1])], upperLayer: 60, payload: [0xFF, 0xFF])
        let layout = try PacketLayout(parsing: packet.span.octets)
        #expect(layout.transportProtocol == .destinationOptions)
        #expect(layout.fragment.offset == 0x5A8 && layout.fragment.moreFollow)
        #expect(layout.payload == 48..<50)
        #expect(layout.fiveTuple == nil)
    }

    @Test func `a routing header with segments left is told`() throws {
        let packet = ipv6(
            headers: [(43, [0, 2, 3, 1] + [UInt8](repeating: 9, count: 20))], upperLayer: 17,
            payload: hex("0001 0002 0008 0000"))
        #expect(try PacketLayout(parsing: packet.span.octets).hasSegmentsLeft)
    }

    @Test func `protocols without ports are flows of their addresses`() throws {
        for (version, number) in [(4, 47), (4, 50), (4, 58), (6, 50), (6, 59), (6, 1), (6, 132)] as [(Int, UInt8)] {
            var packet = ipv6(headers: [], upperLayer: number, payload: [1, 2, 3])
            if version == 4 { packet = hex("45000017000000004000 0000 c0000201 c0000202 010203"); packet[9] = number }
            let layout = try PacketLayout(parsing: packet.span.octets)
            #expect(layout.fiveTuple?.sourcePort == 0 && layout.fiveTuple?.destinationPort == 0)
            #expect(layout.fiveTuple?.protocolNumber.rawValue == number)
            #expect(layout.payload == layout.transportOffset..<packet.count)
        }
    }
}

/// A packet from 2001:db8::1 to 2001:db8::2: each header's bytes with the next one's number put in.
func ipv6(headers: [(number: UInt8, bytes: [UInt8])], upperLayer: UInt8, payload: [UInt8]) -> [UInt8] {
    var body: [UInt8] = []
    for (index, header) in headers.enumerated() {
        body += [index + 1 < headers.count ? headers[index + 1].number : upperLayer] + header.bytes.dropFirst()
    }
    body += payload
    var packet: [UInt8] = [0x60, 0, 0, 0]
    packet.append(bigEndian: UInt16(body.count))
    packet += [headers.first?.number ?? upperLayer, 64]
    return packet + hex("20010db8000000000000000000000001 20010db8000000000000000000000002") + body
}
