import ByteAccess
import IPPacket
import TestSupport
import Testing

struct SuperPacketErrorTests {
    /// A packet, its header, and why the two are refused.
    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let packet: [UInt8]
        let header: VirtioNetworkHeader
        let error: SegmentationError

        init(
            _ name: String, _ error: SegmentationError, _ packet: ModelPacket = ModelPacket(payload: [UInt8](0..<100)),
            bytes: (inout [UInt8]) -> Void = { _ in }, header edit: (inout VirtioNetworkHeader) -> Void = { _ in }
        ) {
            testDescription = name
            self.error = error
            var bytes_ = packet.partialBytes()
            bytes(&bytes_)
            self.packet = bytes_
            var header = packet.virtioHeader(segmentSize: 40)
            edit(&header)
            self.header = header
        }
    }

    static let payload = [UInt8](0..<100)

    static let refusals: [Refusal] = [
        Refusal("no bytes", .packet(.truncated), bytes: { $0 = [] }),
        Refusal("a cut packet", .packet(.truncated), bytes: { $0.removeLast() }),
        Refusal("no version", .packet(.unknownVersion), bytes: { $0[0] = 0x55 }),
        Refusal("a short IP header", .packet(.invalidHeaderLength), bytes: { $0[0] = 0x44 }),
        Refusal("a short TCP header", .packet(.invalidHeaderLength), bytes: { $0[32] = 0x40 }),
        Refusal("TCP/IPv6 for TCP/IPv4", .protocolMismatch, header: { $0.segmentation = .tcpV6 }),
        Refusal("UDP for TCP", .protocolMismatch, header: { $0.segmentation = .udp }),
        Refusal(
            "TCP for UDP", .protocolMismatch, ModelPacket(isTCP: false, payload: payload),
            header: { $0.segmentation = .tcpV4 }),
        Refusal(
            "TCP/IPv4 for TCP/IPv6", .protocolMismatch, ModelPacket(isIPv6: true, payload: payload),
            header: { $0.segmentation = .tcpV4 }),
        Refusal("a first fragment", .fragment, ModelPacket(fragmentField: 0x2000, payload: payload)),
        Refusal("a later fragment", .fragment, ModelPacket(fragmentField: 0x0010, payload: payload)),
        Refusal(
            "an IPv6 fragment", .fragment,
            ModelPacket(isIPv6: true, extensionHeaders: [(44, [0, 0, 0, 1, 0, 0, 0, 9])], payload: payload)),
        Refusal("segments of nothing", .zeroSegmentSize, header: { $0.segmentSize = 0 }),
        Refusal(
            "a short datagram", .lengthMismatch, ModelPacket(isTCP: false, payload: payload), bytes: { $0[25] -= 1 }),
        Refusal(
            "a long datagram", .packet(.truncated), ModelPacket(isTCP: false, payload: payload), bytes: { $0[25] += 1 }),
        Refusal("SYN", .unsplittableFlags, ModelPacket(flags: 0x12, payload: payload)),
        Refusal("RST", .unsplittableFlags, ModelPacket(flags: 0x14, payload: payload)),
        Refusal("a checksum in the IP header", .invalidChecksumPosition, header: { $0.checksumStart = 0 }),
        Refusal("a checksum elsewhere", .invalidChecksumPosition, header: { $0.checksumOffset = 6 }),
        Refusal(
            "unsegmented: from the IP header", .invalidChecksumPosition,
            header: { ($0.segmentation, $0.checksumStart) = (.none, 19) }),
        Refusal(
            "unsegmented: behind the end", .invalidChecksumPosition,
            header: { ($0.segmentation, $0.checksumOffset) = (.none, 131) }),
        Refusal(
            "unsegmented: far away", .invalidChecksumPosition,
            header: { ($0.segmentation, $0.checksumStart, $0.checksumOffset) = (.none, .max, .max) }),
        Refusal(
            "unsegmented: a cut packet", .packet(.truncated), bytes: { $0.removeLast() },
            header: { $0.segmentation = .none }),
    ]

    @Test(arguments: refusals)
    func whatCannotBeSplitIsRefusedWithAReason(refusal: Refusal) {
        #expect(throws: refusal.error) { try split(refusal.packet, refusal.header) }
    }

    @Test func oneSegmentMayOpenOrResetAConnection() throws {
        for flags in [0x02, 0x12, 0x14] as [UInt8] {
            let packet = ModelPacket(flags: flags, payload: Self.payload)
            #expect(try split(packet.partialBytes(), packet.virtioHeader(segmentSize: 100)) == [packet.bytes()])
        }
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func hostileBytesNeverTrap(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var packet = ModelPacket(isIPv6: .random(using: &generator), isTCP: .random(using: &generator))
            packet.payload = generator.bytes(.random(in: 0...200, using: &generator))
            var bytes = packet.partialBytes()
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                bytes[.random(in: 0..<min(80, bytes.count), using: &generator)] = .random(
                    in: 0...255, using: &generator)
            }
            bytes.removeLast(.random(in: 0...min(bytes.count, 3), using: &generator))
            var raw = [UInt8](repeating: 0, count: 10)
            packet.virtioHeader(segmentSize: .random(in: 0...100, using: &generator)).store(into: &raw)
            raw[.random(in: 0..<10, using: &generator)] = .random(in: 0...255, using: &generator)
            guard let header = try? VirtioNetworkHeader(parsing: raw.span.octets),
                let segments = try? split(bytes, header)
            else { continue }
            #expect(segments.allSatisfy { (try? IPHeader(parsing: $0.span.octets))?.totalLength == $0.count })
        }
    }
}

extension VirtioNetworkHeader {
    fileprivate func store(into bytes: inout [UInt8]) {
        bytes.edit { store(into: &$0) }
    }
}
