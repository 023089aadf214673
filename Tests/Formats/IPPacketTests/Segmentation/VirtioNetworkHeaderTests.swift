import ByteAccess
import IPPacket
import TestSupport
import Testing

struct VirtioNetworkHeaderTests {
    @Test func fieldsAreWhereTheStandardHasThem() throws {
        let bytes: [UInt8] = [0x01, 0x81, 0x42, 0x00, 0x58, 0x05, 0x14, 0x00, 0x10, 0x00]
        let header = try VirtioNetworkHeader(parsing: bytes.span.octets)
        #expect(header.flags == .needsChecksum)
        #expect(header.segmentation == .tcpV4)
        #expect(header.hasECN)
        #expect(header.headerLength == 66)
        #expect(header.segmentSize == 1368)
        #expect(header.checksumStart == 20)
        #expect(header.checksumOffset == 16)
    }

    @Test(arguments: [0, 1, 4, 5, 0x80, 0x81, 0x84, 0x85] as [UInt8])
    func everyOfferedKindIsWrittenAsItWasRead(type: UInt8) throws {
        let bytes: [UInt8] = [0x02, type, 1, 2, 3, 4, 5, 6, 7, 8]
        let header = try VirtioNetworkHeader(parsing: bytes.span.octets)
        var output = [UInt8](repeating: 0xFF, count: 12)
        output.edit { header.store(into: &$0, at: 1) }
        #expect(output == [0xFF] + bytes + [0xFF])
    }

    @Test(arguments: 0...0x7F as ClosedRange<UInt8>)
    func otherKindsAreRefused(type: UInt8) throws {
        let bytes: [UInt8] = [0, type, 0, 0, 0, 0, 0, 0, 0, 0]
        if [0, 1, 4, 5].contains(type) {
            #expect(throws: Never.self) { try VirtioNetworkHeader(parsing: bytes.span.octets) }
        } else {
            #expect(throws: SegmentationError.unsupportedSegmentation) {
                try VirtioNetworkHeader(parsing: bytes.span.octets)
            }
        }
    }

    @Test func aShortHeaderIsRefused() {
        for count in 0..<10 {
            #expect(throws: SegmentationError.truncatedHeader) {
                try VirtioNetworkHeader(parsing: [UInt8](repeating: 0, count: count).span.octets)
            }
        }
    }

    @Test func aPacketAloneHasAHeaderOfZeros() {
        var output = [UInt8](repeating: 0xFF, count: 10)
        output.edit { VirtioNetworkHeader().store(into: &$0) }
        #expect(output == [UInt8](repeating: 0, count: 10))
    }
}
