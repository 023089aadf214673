import ByteAccess
import Glibc
import IPPacket
import TestSupport
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct ControlMessagesTests {
    @Test func readsEveryLengthThatKernelsGiveATrainsSegmentSize() {
        // UDP_GRO is option 104 of level 17; current kernels give an int, others 16 bits.
        #expect(ControlMessages.read(message(17, 104, [0xA0, 0x05, 0, 0]).span.octets).segmentSize == 1_440)
        #expect(ControlMessages.read(message(17, 104, [0xA0, 0x05]).span.octets).segmentSize == 1_440)
        #expect(ControlMessages.read(message(17, 104, [0xA0]).span.octets).segmentSize == 0)
    }

    @Test func skipsWhatItDoesNotKnowAndReadsWhatFollows() {
        let bytes = message(1, 29, [UInt8](repeating: 1, count: 16)) + message(0, 1, [0x88])
        #expect(ControlMessages.read(bytes.span.octets).trafficClass == 0x88)
    }

    @Test func stopsAtALengthThatCannotBe() {
        let good = message(0, 1, [0x88])
        for length in [0, 15, 1_000, Int.max, -1, Int.min] {
            var bytes = good
            bytes.replaceSubrange(0..<8, with: octets(of: length))
            #expect(ControlMessages.read((bytes + good).span.octets) == ControlMessages.Received())
            #expect(ControlMessages.read((good + bytes).span.octets).trafficClass == 0x88)
        }
        // Every cut leaves the whole message unread.
        for count in 0..<17 { #expect(ControlMessages.read(Array(good[..<count]).span.octets).trafficClass == 0) }
        #expect(ControlMessages.read(Array(good[..<17]).span.octets).trafficClass == 0x88)
    }

    @Test func ignoresDataThatIsTooShort() {
        #expect(ControlMessages.read(message(0, 8, [UInt8](repeating: 1, count: 11)).span.octets).source == nil)
        #expect(ControlMessages.read(message(41, 50, [UInt8](repeating: 1, count: 19)).span.octets).source == nil)
        #expect(ControlMessages.read(message(41, 67, [1, 2, 3]).span.octets).trafficClass == 0)
    }

    /// A control message with its padding: length, level, type, data.
    private func message(_ level: Int32, _ type: Int32, _ data: [UInt8]) -> [UInt8] {
        let bytes = octets(of: 16 + data.count) + octets(of: level) + octets(of: type) + data
        return bytes + [UInt8](repeating: 0, count: (8 - bytes.count % 8) % 8)
    }

    private func octets(of integer: some FixedWidthInteger & BitwiseCopyable) -> [UInt8] {
        Array([integer].span.octets)
    }
}
