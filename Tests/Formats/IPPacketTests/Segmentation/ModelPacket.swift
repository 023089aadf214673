import ByteAccess
import IPPacket
import TestSupport

/// A TCP or UDP packet as a table of its fields, and the bytes that the RFCs make of them, put together one after the other: what
/// splitting and joining are compared with.
struct ModelPacket: Equatable, Sendable {
    /// What is wrong, or unusual, with a packet.
    enum Flaw: Equatable, Sendable, CaseIterable {
        case none, wrongTransportChecksum, wrongHeaderChecksum, noTransportChecksum, allOnesTransportChecksum
    }

    var isIPv6 = false
    var isTCP = true
    var trafficClass: UInt8 = 0
    var flowLabel: UInt32 = 0x2_1F0A
    var hopLimit: UInt8 = 64
    var identification: UInt16 = 0x1000
    /// Reserved bit, DF, MF and fragment offset.
    var fragmentField: UInt16 = 0x4000
    var source: UInt8 = 1
    var destination: UInt8 = 2
    var ipOptions: [UInt8] = []
    /// Whole extension headers by their numbers; their first byte is overwritten.
    var extensionHeaders: [(number: UInt8, bytes: [UInt8])] = []
    var sourcePort: UInt16 = 40_000
    var destinationPort: UInt16 = 443
    var sequence: UInt32 = 0xFFFF_F000
    var acknowledgment: UInt32 = 0x1234_5678
    /// The low half of byte 12: reserved bits.
    var reserved: UInt8 = 0
    var flags: UInt8 = 0x10
    var window: UInt16 = 501
    var urgentPointer: UInt16 = 0
    var tcpOptions: [UInt8] = [1, 1, 8, 10, 0, 1, 2, 3, 4, 5, 6, 7]
    var payload: [UInt8] = []
    var flaw = Flaw.none
    /// Zeros behind the packet.
    var padding = 0

    var networkLength: Int { isIPv6 ? 40 + extensionHeaders.reduce(0) { $0 + $1.bytes.count } : 20 + ipOptions.count }
    var headersLength: Int { networkLength + (isTCP ? 20 + tcpOptions.count : 8) }
    var length: Int { headersLength + payload.count }

    /// Equal packets have equal bytes: fields that their kind has not do not count.
    static func == (a: Self, b: Self) -> Bool {
        a.bytes() == b.bytes()
    }

    /// True when nothing is wrong with the checksums.
    var isFlawless: Bool {
        var flawless = self
        flawless.flaw = .none
        return self == flawless
    }

    /// The packet, complete.
    func bytes() -> [UInt8] {
        var transport = transportHeader(checksum: 0)
        let sum = referenceSum(pseudoHeader() + transport + payload)
        var checksum = ~sum
        if !isTCP, checksum == 0 { checksum = 0xFFFF }
        switch flaw {
        case .wrongTransportChecksum: checksum ^= 0x0100
        case .noTransportChecksum: checksum = 0
        case .allOnesTransportChecksum: checksum = 0xFFFF
        case .none, .wrongHeaderChecksum: break
        }
        transport = transportHeader(checksum: checksum)
        return networkHeader() + transport + payload + [UInt8](repeating: 0, count: padding)
    }

    /// The packet with the sum of the pseudo-header for a checksum, as the kernel leaves it for a device to complete.
    func partialBytes() -> [UInt8] {
        networkHeader() + transportHeader(checksum: referenceSum(pseudoHeader())) + payload
    }

    /// The virtio header that asks to split this packet into segments of `segmentSize` bytes of payload.
    func virtioHeader(segmentSize: Int) -> VirtioNetworkHeader {
        var header = VirtioNetworkHeader(flags: .needsChecksum)
        header.segmentation = isTCP ? (isIPv6 ? .tcpV6 : .tcpV4) : .udp
        header.headerLength = UInt16(headersLength)
        header.segmentSize = UInt16(segmentSize)
        header.checksumStart = UInt16(networkLength)
        header.checksumOffset = isTCP ? 16 : 6
        return header
    }

    /// The packets that this one stands for.
    func segments(segmentSize: Int) -> [ModelPacket] {
        var segments: [ModelPacket] = []
        var start = 0
        repeat {
            let end = min(start + segmentSize, payload.count)
            var segment = self
            segment.payload = Array(payload[start..<end])
            segment.identification &+= UInt16(segments.count)
            segment.sequence &+= UInt32(start)
            if end < payload.count { segment.flags &= ~0x09 }
            if start > 0 { segment.flags &= ~0x80 }
            segments.append(segment)
            start = end
        } while start < payload.count
        return segments
    }

    private func networkHeader() -> [UInt8] {
        let total = length
        var header: [UInt8] = []
        if isIPv6 {
            let transportNumber: UInt8 = isTCP ? 6 : 17
            header.append(bigEndian: 0x6000 | UInt16(trafficClass) << 4 | UInt16(flowLabel >> 16))
            header.append(bigEndian: UInt16(flowLabel & 0xFFFF))
            header.append(bigEndian: UInt16(total - 40))
            header += [extensionHeaders.first?.number ?? transportNumber, hopLimit]
            header += addresses
            for (index, (_, bytes)) in extensionHeaders.enumerated() {
                let next = index + 1 < extensionHeaders.count ? extensionHeaders[index + 1].number : transportNumber
                header += [next] + bytes.dropFirst()
            }
            return header
        }
        header += [0x40 | UInt8(5 + ipOptions.count / 4), trafficClass]
        header.append(bigEndian: UInt16(total))
        header.append(bigEndian: identification)
        header.append(bigEndian: fragmentField)
        header += [hopLimit, isTCP ? 6 : 17, 0, 0]
        header += addresses + ipOptions
        let checksum = ~referenceSum(header) ^ (flaw == .wrongHeaderChecksum ? 0x0100 : 0)
        header[10] = UInt8(checksum >> 8)
        header[11] = UInt8(checksum & 0xFF)
        return header
    }

    private var addresses: [UInt8] {
        if isIPv6 {
            let prefix: [UInt8] = [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11)
            return prefix + [source] + prefix + [destination]
        }
        return [192, 0, 2, source, 198, 51, 100, destination]
    }

    private func pseudoHeader() -> [UInt8] {
        var header = addresses + [0, isTCP ? 6 : 17]
        header.append(bigEndian: UInt16(length - networkLength))
        return header
    }

    private func transportHeader(checksum: UInt16) -> [UInt8] {
        var header: [UInt8] = []
        header.append(bigEndian: sourcePort)
        header.append(bigEndian: destinationPort)
        if isTCP {
            for value in [sequence, acknowledgment] {
                header.append(bigEndian: UInt16(value >> 16))
                header.append(bigEndian: UInt16(value & 0xFFFF))
            }
            header += [UInt8(5 + tcpOptions.count / 4) << 4 | reserved, flags]
            header.append(bigEndian: window)
            header.append(bigEndian: checksum)
            header.append(bigEndian: urgentPointer)
            return header + tcpOptions
        }
        header.append(bigEndian: UInt16(8 + payload.count))
        header.append(bigEndian: checksum)
        return header
    }
}

/// The packets that `packet` stands for, as ``SuperPacket`` writes them; each with bytes behind it that must not change.
func split(_ packet: [UInt8], _ header: VirtioNetworkHeader) throws -> [[UInt8]] {
    let superPacket = try SuperPacket(parsing: packet.span.octets, header: header)
    return (0..<superPacket.segmentCount).map { index in
        let length = superPacket.length(of: index)
        var output = [UInt8](repeating: 0xA5, count: length + 3)
        output.edit { superPacket.writeSegment(index, of: packet.span.octets, into: &$0) }
        precondition(output[length...].allSatisfy { $0 == 0xA5 }, "a segment is longer than promised")
        return Array(output[..<length])
    }
}
