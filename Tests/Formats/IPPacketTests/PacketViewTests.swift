import ByteAccess
import IPPacket
import TestSupport
import Testing

@Suite struct PacketViewTests {
    @Test func `an IPv4 packet with options shows them`() throws {
        let packet = CapturedPackets.udpWithOptionsIPv4
        let view = try IPv4PacketView(checking: packet.span.octets)
        #expect(view.header.headerLength == 28)
        #expect(view.identification == 0x454B)
        let isWhole = view.fragment.isWhole
        #expect(isWhole)
        let dontFragment = view.dontFragment
        #expect(dontFragment)
        let isValid = view.hasValidHeaderChecksum
        #expect(isValid)
        #expect(Array(view.options) == hex("070708c000020100"))
        #expect(view.payload.byteCount == 15)
    }

    @Test(arguments: CapturedPackets.all.filter { $0[0] >> 4 == 4 })
    func `a damaged IPv4 header has a wrong checksum`(_ packet: [UInt8]) throws {
        #expect(try hasValidHeaderChecksum(packet))
        for offset in 1..<20 where offset != 2 && offset != 3 {
            var damaged = packet
            damaged[offset] ^= 0x20
            #expect(try !hasValidHeaderChecksum(damaged))
        }
    }

    @Test func `fragments say where they belong`() throws {
        let first = try layout(CapturedPackets.firstFragmentIPv4)
        #expect(first.fragment.offset == 0 && first.fragment.moreFollow && first.fragment.holdsTransportHeader)
        #expect(!first.fragment.isWhole)
        #expect(first.fiveTuple?.destinationPort == 9)
        #expect(first.payload == 28..<1500)
        let last = try layout(CapturedPackets.lastFragmentIPv4)
        #expect(last.fragment.offset == 1480 && !last.fragment.moreFollow && !last.fragment.holdsTransportHeader)
        #expect(last.fiveTuple == nil)
        #expect(last.payload == 20..<84)

        let packet = CapturedPackets.firstFragmentIPv6
        let firstIPv6 = try IPv6PacketView(checking: packet.span.octets)
        #expect(firstIPv6.fragmentIdentification == 0x7A63_4E37)
        #expect(firstIPv6.fragment.offset == 0 && firstIPv6.fragment.moreFollow)
        #expect(firstIPv6.upperLayerProtocol == .udp)
        #expect(firstIPv6.upperLayerOffset == 48)
        let lastIPv6 = try layout(CapturedPackets.lastFragmentIPv6)
        #expect(lastIPv6.fragment.offset == 1448 && !lastIPv6.fragment.moreFollow)
        #expect(lastIPv6.fiveTuple == nil)
        #expect(lastIPv6.payload == 48..<144)
    }

    @Test func `a TCP segment shows its fields and options`() throws {
        let packet = CapturedPackets.tcpSynAckIPv4
        let ip = try IPv4PacketView(checking: packet.span.octets)
        let segment = try TCPSegmentView(checking: ip.payload)
        #expect(segment.sourcePort == 80)
        #expect(segment.destinationPort == 40_001)
        #expect(segment.sequenceNumber == 0x52B1_FFE2)
        #expect(segment.acknowledgmentNumber == 0x96EA_C006)
        #expect(segment.flags == [.synchronize, .acknowledgment])
        #expect(segment.window == 0xFE88)
        #expect(segment.checksum == 0xBDD1)
        #expect(segment.urgentPointer == 0)
        #expect(segment.headerLength == 40)
        #expect(segment.options.byteCount == 20)
        #expect(segment.maximumSegmentSize == 1460)
        #expect(segment.payload.byteCount == 0)

        let data = CapturedPackets.tcpDataIPv6
        let layout = try PacketLayout(parsing: data.span.octets)
        #expect(String(decoding: data[layout.payload], as: UTF8.self) == "GET")
        #expect(layout.fiveTuple?.sourcePort == 40_001)
        #expect(layout.fiveTuple?.destinationPort == 80)
        #expect(layout.fiveTuple?.protocolNumber == .tcp)
    }

    @Test(
        arguments: [
            ("", nil), ("0204 05B4", 1460), ("01 01 0204 05B4 0000", 1460), ("00 01 01 01 0204 05B4", nil),
            ("01 01 0204", nil),
            ("01 01 01 02", nil), ("0203 0500", nil), ("0300 0101 0204 05B4", nil), ("0301 0101 0204 05B4", nil),
            ("08FF 0101 0204 05B4", nil), ("080A 0000 0000 0000 0000 0204 05B4 0000", 1460),
        ] as [(String, UInt16?)])
    func `broken TCP options end the search for the segment size`(_ options: String, _ size: UInt16?) throws {
        var header = hex("9c41 0050 00000000 00000000 5002 0000 0000 0000") + hex(options)
        header[12] = UInt8(header.count / 4) << 4
        let segment = try TCPSegmentView(checking: header.span.octets)
        #expect(segment.maximumSegmentSize == size)
    }

    @Test func `a UDP datagram ends where its length says`() throws {
        let bytes = hex("9c40 0009 000a 0000 4142 4344")
        let datagram = try UDPDatagramView(checking: bytes.span.octets)
        #expect(datagram.sourcePort == 40_000)
        #expect(datagram.destinationPort == 9)
        #expect(datagram.checksum == 0)
        #expect(Array(datagram.payload) == [0x41, 0x42])
        for (length, error) in (0..<8).map({ ($0, .invalidTotalLength) }) + [(13, .truncated)]
            as [(UInt8, IPPacketError)]
        {
            var malformed = bytes
            malformed[5] = length
            #expect(throws: error) { _ = try UDPDatagramView(checking: malformed.span.octets) }
        }
    }

    @Test func `an echo and its reply are the same flow, reversed`() throws {
        for (request, reply) in [
            (CapturedPackets.echoRequestIPv4, CapturedPackets.echoReplyIPv4),
            (CapturedPackets.echoRequestIPv6, CapturedPackets.echoReplyIPv6),
        ] {
            let requestTuple = try #require(try PacketLayout(parsing: request.span.octets).fiveTuple)
            let replyTuple = try #require(try PacketLayout(parsing: reply.span.octets).fiveTuple)
            #expect(requestTuple.sourcePort == 0x1234)
            #expect(requestTuple != replyTuple)
            #expect(requestTuple.reversed == replyTuple)
        }
    }

    @Test func `ICMP messages show what they are`() throws {
        let error = CapturedPackets.portUnreachableIPv4
        let errorPacket = try IPv4PacketView(checking: error.span.octets)
        let errorView = try ICMPv4MessageView(checking: errorPacket.payload)
        #expect(errorView.type == 3 && errorView.code == 3 && errorView.checksum == 0x8127)
        let isError = errorView.isError
        #expect(isError)
        #expect(errorView.echoIdentifier == nil)
        #expect(Array(errorView.body) == CapturedPackets.udpIPv4)

        let echo = CapturedPackets.echoRequestIPv6
        let echoPacket = try IPv6PacketView(checking: echo.span.octets)
        let echoView = try ICMPv6MessageView(checking: echoPacket.payload)
        #expect(echoView.type == 128 && echoView.code == 0 && echoView.checksum == 0xFD3C)
        let echoIsError = echoView.isError
        #expect(!echoIsError)
        #expect(echoView.echoIdentifier == 0x1234)
        #expect(echoView.echoSequenceNumber == 1)
        #expect(echoView.body.byteCount == 9)

        let shortEcho: [UInt8] = [128, 0, 0, 0, 1, 2, 3]
        let short = try ICMPv6MessageView(checking: shortEcho.span.octets)
        #expect(short.echoIdentifier == nil && short.echoSequenceNumber == nil)
    }
}

private func hasValidHeaderChecksum(_ packet: [UInt8]) throws -> Bool {
    try IPv4PacketView(checking: packet.span.octets).hasValidHeaderChecksum
}

private func layout(_ packet: [UInt8]) throws -> PacketLayout {
    try PacketLayout(parsing: packet.span.octets)
}
