import ByteAccess
import IPPacket
import TestSupport
import Testing

/// A trap would end the test process: these tests pass by getting to their end.
@Suite struct MalformedPacketTests {
    @Test(arguments: CapturedPackets.all)
    func `a packet cut anywhere is an error, with and without a length that fits`(_ packet: [UInt8]) {
        for count in 0..<packet.count {
            var cut = Array(packet[..<count])
            #expect(throws: IPPacketError.self) { try PacketLayout(parsing: cut.span.octets) }
            exercise(&cut)
            // The IP header agrees with the cut: now it is the transport header's turn.
            let isIPv4 = packet[0] >> 4 == 4
            guard count >= (isIPv4 ? 20 : 40) else { continue }
            let length = isIPv4 ? count : count - 40
            cut.replaceSubrange(isIPv4 ? 2..<4 : 4..<6, with: [UInt8(length >> 8), UInt8(length & 0xFF)])
            exercise(&cut)
        }
    }

    @Test func `any changed byte is taken`() {
        for packet in CapturedPackets.all {
            for offset in 0..<min(packet.count, 100) {
                for value in [0, 1, 4, 6, 0x0F, 0x40, 0x4F, 0x60, 0x7F, 0x80, 0xFF] as [UInt8] {
                    var changed = packet
                    changed[offset] = value
                    exercise(&changed)
                }
            }
        }
    }

    @Test func `random bytes are taken`() {
        var random = SeededGenerator(seed: 791)
        for _ in 0..<5_000 {
            var bytes = random.bytes(Int.random(in: 0..<120, using: &random))
            if !bytes.isEmpty { bytes[0] = bytes[0] & 0xF | (Bool.random(using: &random) ? 0x40 : 0x60) }
            exercise(&bytes)
        }
    }
}

/// Calls everything there is on the bytes.
private func exercise(_ bytes: inout [UInt8]) {
    if let view = try? IPv4PacketView(checking: bytes.span.octets) {
        _ = (view.identification, view.dontFragment, view.fragment, view.headerChecksum, view.hasValidHeaderChecksum)
        #expect(20 + view.options.byteCount + view.payload.byteCount == view.header.totalLength)
        exerciseTransport(view.payload)
    }
    if let view = try? IPv6PacketView(checking: bytes.span.octets) {
        _ = view.flowLabel
        #expect(40 + view.extensionHeaders.byteCount + view.payload.byteCount == view.header.totalLength)
        exerciseTransport(view.payload)
    }
    exerciseTransport(bytes.span.octets)
    var output = [UInt8](repeating: 0, count: 1280)
    let packet = bytes
    _ = output.edit { ICMPDestinationUnreachable.write(for: packet.span.octets, reason: .host, into: &$0) }
    _ = bytes.edit { ExplicitCongestionNotification.markCongestionExperienced(in: &$0) }
    if let layout = try? PacketLayout(parsing: bytes.span.octets) {
        #expect(layout.transportOffset <= layout.payload.lowerBound)
        #expect(layout.payload.upperBound <= layout.header.totalLength)
        _ = layout.transportChecksum(of: bytes.span.octets)
        if bytes.edit({ layout.writeTransportChecksum(in: &$0) }) {
            #expect(layout.transportChecksum(of: bytes.span.octets) == .valid)
        }
    }
}

private func exerciseTransport(_ bytes: RawSpan) {
    if let view = try? TCPSegmentView(checking: bytes) {
        _ = (view.sourcePort, view.destinationPort, view.sequenceNumber, view.acknowledgmentNumber, view.flags)
        _ = (view.window, view.checksum, view.urgentPointer, view.maximumSegmentSize)
        #expect(20 + view.options.byteCount + view.payload.byteCount == bytes.byteCount)
    }
    if let view = try? UDPDatagramView(checking: bytes) {
        _ = (view.sourcePort, view.destinationPort, view.checksum)
        #expect(8 + view.payload.byteCount <= bytes.byteCount)
    }
    if let view = try? ICMPv4MessageView(checking: bytes) {
        _ = (view.type, view.code, view.checksum, view.isError, view.echoIdentifier, view.echoSequenceNumber)
        #expect(8 + view.body.byteCount == bytes.byteCount)
    }
    if let view = try? ICMPv6MessageView(checking: bytes) {
        _ = (view.type, view.code, view.checksum, view.isError, view.echoIdentifier, view.echoSequenceNumber)
        #expect(4 + view.body.byteCount == bytes.byteCount)
    }
}
