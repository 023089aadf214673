import ByteAccess
import IPPacket
import TestSupport
import Testing

struct SuperPacketTests {
    /// Destination options with padding only, and hop-by-hop options with a router alert.
    static let options: (number: UInt8, bytes: [UInt8]) = (60, [0, 1, 1, 12] + [UInt8](repeating: 0, count: 12))
    static let hopByHop: (number: UInt8, bytes: [UInt8]) = (0, [0, 0, 5, 2, 0, 0, 1, 0])

    @Test(arguments: 0..<150 as Range<UInt64>)
    func segmentsAreThoseThatTheFieldsGive(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var packet = ModelPacket()
        packet.isIPv6 = Bool.random(using: &generator)
        packet.isTCP = Bool.random(using: &generator)
        packet.trafficClass = .random(in: 0...255, using: &generator)
        packet.flowLabel = .random(in: 0...0xF_FFFF, using: &generator)
        packet.hopLimit = .random(in: 0...255, using: &generator)
        packet.identification = Bool.random(using: &generator) ? 0xFFFD : .random(in: 0...0xFFFF, using: &generator)
        packet.fragmentField = [0x4000, 0].randomElement(using: &generator) ?? 0
        packet.sequence = Bool.random(using: &generator) ? 0xFFFF_FFF0 : .random(in: 0...(.max), using: &generator)
        packet.acknowledgment = .random(in: 0...(.max), using: &generator)
        packet.flags = .random(in: 0...255, using: &generator) & ~0x06
        packet.reserved = .random(in: 0...15, using: &generator)
        packet.window = .random(in: 0...(.max), using: &generator)
        packet.urgentPointer = .random(in: 0...(.max), using: &generator)
        packet.tcpOptions = generator.bytes(4 * .random(in: 0...10, using: &generator))
        if packet.isIPv6 {
            if Bool.random(using: &generator) { packet.extensionHeaders.append(Self.hopByHop) }
            if Bool.random(using: &generator) { packet.extensionHeaders.append(Self.options) }
        } else {
            packet.ipOptions = [UInt8](repeating: 1, count: 4 * .random(in: 0...10, using: &generator))
        }
        let most = 65_535 - packet.headersLength
        let limit = [10, 3000, most].randomElement(using: &generator) ?? most
        packet.payload = generator.bytes(.random(in: 0...limit, using: &generator))
        let size = max(
            packet.payload.count / 200,
            [.random(in: 1...20, using: &generator), .random(in: 500...1500, using: &generator), 65_535]
                .randomElement(using: &generator) ?? 1)
        let expected = packet.segments(segmentSize: size)

        var header = packet.virtioHeader(segmentSize: size)
        // A hint that the kernel may get wrong, and a bit that changes nothing.
        header.headerLength = .random(in: 0...(.max), using: &generator)
        header.hasECN = Bool.random(using: &generator)
        let superPacket = try SuperPacket(parsing: packet.partialBytes().span.octets, header: header)
        #expect(superPacket.segmentCount == expected.count)
        #expect(superPacket.segmentLength == expected.first?.length)
        #expect(superPacket.lastSegmentLength == expected.last?.length)
        #expect(superPacket.ipHeader.totalLength == packet.length)
        let segments = try split(packet.partialBytes() + generator.bytes(5), header)
        #expect(segments == expected.map { $0.bytes() })
    }

    @Test(arguments: [false, true], [false, true])
    func anyNumberOfSegmentsIsWritten(isIPv6: Bool, isTCP: Bool) throws {
        var whole = ModelPacket(isIPv6: isIPv6, isTCP: isTCP)
        whole.tcpOptions = []
        whole.payload = (0..<65_535 - whole.headersLength).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let bytes = whole.partialBytes()
        let superPacket = try SuperPacket(parsing: bytes.span.octets, header: whole.virtioHeader(segmentSize: 1))
        #expect(superPacket.segmentCount == whole.payload.count)
        for index in [0, 1, 127, 128, 129, 32_768, whole.payload.count - 1] {
            var segment = whole
            segment.payload = [whole.payload[index]]
            segment.sequence &+= UInt32(index)
            segment.identification &+= UInt16(index)
            var output = [UInt8](repeating: 0, count: superPacket.length(of: index))
            output.edit { superPacket.writeSegment(index, of: bytes.span.octets, into: &$0) }
            #expect(output == segment.bytes())
        }
    }

    @Test func finAndPushAreInTheLastSegmentAndCWRInTheFirst() throws {
        var packet = ModelPacket(payload: [UInt8](repeating: 7, count: 300))
        packet.flags = 0xD9
        let flags = try split(packet.partialBytes(), packet.virtioHeader(segmentSize: 100)).map { $0[33] }
        #expect(flags == [0xD0, 0x50, 0x59])
        let alone = try split(packet.partialBytes(), packet.virtioHeader(segmentSize: 300)).map { $0[33] }
        #expect(alone == [0xD9])
    }

    @Test func sequenceNumbersAndIdentificationsWrapAround() throws {
        var packet = ModelPacket(payload: [UInt8](repeating: 7, count: 30))
        packet.sequence = 0xFFFF_FFFB
        packet.identification = 0xFFFF
        let segments = try split(packet.partialBytes(), packet.virtioHeader(segmentSize: 10))
        #expect(segments.map { Array($0[4..<6]) } == [[0xFF, 0xFF], [0, 0], [0, 1]])
        #expect(segments.map { Array($0[24..<28]) } == [[255, 255, 255, 251], [0, 0, 0, 5], [0, 0, 0, 15]])
    }

    @Test(arguments: [false, true])
    func aComputedUDPChecksumOfZeroIsWrittenAsAllOnes(isIPv6: Bool) throws {
        // The payload of the second datagram is its own checksum, so that the sum has all bits set.
        var packet = ModelPacket(isIPv6: isIPv6, isTCP: false, payload: [1, 2, 0, 0])
        let second = packet.segments(segmentSize: 2)[1].bytes()
        packet.payload.replaceSubrange(2..<4, with: second[packet.headersLength - 2..<packet.headersLength])
        let segments = try split(packet.partialBytes(), packet.virtioHeader(segmentSize: 2))
        #expect(segments[1][packet.headersLength - 2..<packet.headersLength] == [0xFF, 0xFF])
        #expect(segments == packet.segments(segmentSize: 2).map { $0.bytes() })
    }

    @Test func onlyDatagramsWithoutAChecksumStayWithoutOne() throws {
        var packet = ModelPacket(isTCP: false, payload: [UInt8](repeating: 3, count: 20))
        packet.flaw = .noTransportChecksum
        var header = packet.virtioHeader(segmentSize: 8)
        header.flags = []
        #expect(try split(packet.bytes(), header) == packet.segments(segmentSize: 8).map { $0.bytes() })
        // IPv6 does not know them, and a checksum to be completed may be zero before.
        header.flags = .needsChecksum
        let completed = try split(packet.bytes(), header)
        packet.flaw = .none
        #expect(completed == packet.segments(segmentSize: 8).map { $0.bytes() })
        packet.isIPv6 = true
        header = packet.virtioHeader(segmentSize: 8)
        header.flags = []
        packet.flaw = .noTransportChecksum
        let written = try split(packet.bytes(), header)
        packet.flaw = .none
        #expect(written == packet.segments(segmentSize: 8).map { $0.bytes() })
    }

    @Test func placesLeftToVisitAreUnderstoodFromThePartialChecksum() throws {
        // A routing header with one segment left: the sender's sum is over the last destination, which is not in the header.
        var packet = ModelPacket(isIPv6: true, payload: [UInt8](repeating: 9, count: 100))
        packet.extensionHeaders = [(43, [0, 2, 0, 1] + [UInt8](repeating: 0x22, count: 20))]
        packet.destination = 77
        let final = packet.partialBytes()
        let expected = packet.segments(segmentSize: 40).map { $0.bytes() }
        func redirected(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            bytes[39] = 5
            return bytes
        }
        let header = packet.virtioHeader(segmentSize: 40)
        #expect(try split(redirected(final), header) == expected.map(redirected))
        var unfinished = header
        unfinished.flags = []
        #expect(throws: SegmentationError.invalidChecksumPosition) { try split(redirected(final), unfinished) }
    }

    @Test(arguments: [false, true], [false, true])
    func aPacketAloneIsCompletedAndNotChangedOtherwise(isIPv6: Bool, isTCP: Bool) throws {
        for count in [0, 1, 2, 63, 64, 65, 1368] {
            let packet = ModelPacket(
                isIPv6: isIPv6, isTCP: isTCP, payload: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 11) })
            var header = packet.virtioHeader(segmentSize: 0)
            header.segmentation = .none
            #expect(try split(packet.partialBytes() + [1, 2, 3], header) == [packet.bytes()])
            #expect(try split(packet.bytes() + [1, 2, 3], VirtioNetworkHeader()) == [packet.bytes()])
            #expect(try split(packet.bytes(), VirtioNetworkHeader(flags: .dataValid)) == [packet.bytes()])
        }
    }

    @Test func aCompletedChecksumOfZeroIsWrittenAsAllOnes() throws {
        var packet = ModelPacket(isTCP: false, payload: [0, 0])
        packet.payload = Array(packet.bytes()[26..<28])
        var header = packet.virtioHeader(segmentSize: 0)
        header.segmentation = .none
        #expect(try split(packet.partialBytes(), header)[0][26..<28] == [0xFF, 0xFF])
    }
}
