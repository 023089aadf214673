import ByteAccess
import IPPacket
import TestSupport
import Testing

/// A super-packet that is cut finer than its sender asked for.
struct FinerCutTests {
    @Test(arguments: 0..<60 as Range<UInt64>)
    func segmentsAreThoseOfASmallerSegmentSize(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var packet = ModelPacket(isIPv6: .random(using: &generator))
        packet.flags = .random(in: 0...255, using: &generator) & ~0x06
        packet.tcpOptions = generator.bytes(4 * .random(in: 0...10, using: &generator))
        packet.payload = generator.bytes(.random(in: 3_000...60_000, using: &generator))
        let limit = Int.random(in: packet.headersLength + 512...1_300, using: &generator)
        let bytes = packet.partialBytes()
        let whole = try SuperPacket(parsing: bytes.span.octets, header: packet.virtioHeader(segmentSize: 1_368))
        let cut = whole.cut(to: limit, bytes.span.octets)
        let expected = packet.segments(segmentSize: limit - packet.headersLength)
        #expect(cut.segmentCount == expected.count)
        #expect(cut.segmentLength == limit)
        #expect(segments(of: cut, bytes) == expected.map { $0.bytes() })
    }

    @Test func whatCannotBeCutStaysAsItIs() throws {
        var datagrams = ModelPacket(isTCP: false)
        datagrams.payload = [UInt8](repeating: 1, count: 5_000)
        var unordered = ModelPacket()
        unordered.fragmentField = 0
        unordered.payload = datagrams.payload
        var single = ModelPacket()
        single.payload = [UInt8](repeating: 1, count: 1_368)
        for packet in [datagrams, unordered, single] {
            let bytes = packet.partialBytes()
            let whole = try SuperPacket(parsing: bytes.span.octets, header: packet.virtioHeader(segmentSize: 1_368))
            #expect(whole.cut(to: 1_216, bytes.span.octets).segmentCount == whole.segmentCount)
        }
        // Nor what would be cut to crumbs, or is short enough.
        var packet = ModelPacket()
        packet.payload = datagrams.payload
        let bytes = packet.partialBytes()
        let whole = try SuperPacket(parsing: bytes.span.octets, header: packet.virtioHeader(segmentSize: 1_000))
        #expect(whole.cut(to: 500, bytes.span.octets).segmentCount == 5)
        #expect(whole.cut(to: 1_216, bytes.span.octets).segmentCount == 5)
    }

    private func segments(of packet: SuperPacket, _ bytes: [UInt8]) -> [[UInt8]] {
        (0..<packet.segmentCount).map { index in
            var output = [UInt8](repeating: 0xA5, count: packet.length(of: index))
            output.edit { packet.writeSegment(index, of: bytes.span.octets, into: &$0) }
            return output
        }
    }
}
