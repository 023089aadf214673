import ByteAccess

/// Packets that follow one another and make up one super-packet, or will when another comes.
struct JoinedGroup {
    /// What became of a packet.
    enum Outcome {
        /// It is part of the group.
        case joined
        /// It is, and no other can be.
        case joinedAsLast
        /// It does not follow, or what it should follow has a wrong checksum.
        case refused
        /// It has a wrong checksum.
        case invalidChecksum
    }

    private let first: JoinableHeaders
    /// The length of the super-packet.
    private var length: Int
    private(set) var segmentCount: Int
    /// FIN and PSH, as the last packet has them.
    private var lastFlags: TCPFlags
    /// Nil as long as nobody asked.
    private var isFirstValid: Bool?
    /// The identification is the same in all packets; known when there are two.
    private var hasFixedIdentification: Bool

    /// A group of one.
    init(first: JoinableHeaders) {
        self.first = first
        length = first.packet.count
        segmentCount = 1
        lastFlags = []
        hasFixedIdentification = false
    }

    /// Takes a packet if it follows.
    @inline(__always)
    mutating func append(_ next: JoinableHeaders, in buffer: RawSpan, maximumSegments: Int) -> Outcome {
        let payload = next.payloadLength
        guard next.isTCP == first.isTCP, next.isIPv6 == first.isIPv6, next.headersLength == first.headersLength,
            payload <= first.payloadLength, length + payload <= PacketJoiner.maximumLength,
            segmentCount < maximumSegments, hasSameFlow(next, in: buffer)
        else { return .refused }
        let isFixed: Bool
        if first.isIPv6 {
            isFixed = false
        } else {
            let start = first.packet.lowerBound
            let step = buffer.bigEndianUInt16(at: next.packet.lowerBound + 4) &- buffer.bigEndianUInt16(at: start + 4)
            let isAtomic = buffer.uint8(at: start + 6) & 0x40 != 0
            isFixed = segmentCount == 1 ? isAtomic && step == 0 : hasFixedIdentification
            guard step == (isFixed ? 0 : UInt16(segmentCount)) else { return .refused }
        }
        if first.isTCP {
            guard follows(next, in: buffer) else { return .refused }
        }
        let isFirstValid = self.isFirstValid ?? first.haveValidChecksums(in: buffer)
        self.isFirstValid = isFirstValid
        guard isFirstValid else { return .refused }
        guard next.haveValidChecksums(in: buffer) else { return .invalidChecksum }
        length += payload
        segmentCount += 1
        hasFixedIdentification = isFixed
        if next.isLast {
            lastFlags = TCPFlags(rawValue: buffer.uint8(at: next.transport + 13)).intersection([.finish, .push])
        }
        return next.isLast || payload < first.payloadLength ? .joinedAsLast : .joined
    }

    /// True when all that tells flows apart, and all that the packets of one super-packet share, is the same in the IP headers, and
    /// in the ports.
    @inline(__always)
    private func hasSameFlow(_ next: JoinableHeaders, in buffer: RawSpan) -> Bool {
        let (a, b) = (first.packet.lowerBound, next.packet.lowerBound)
        var difference =
            buffer.bigEndianUInt32(at: first.transport) ^ buffer.bigEndianUInt32(at: next.transport)
        if first.isIPv6 {
            // Traffic class and flow label; next header and hop limit; addresses.
            difference |= buffer.bigEndianUInt32(at: a) ^ buffer.bigEndianUInt32(at: b)
            difference |= UInt32(buffer.bigEndianUInt16(at: a + 6) ^ buffer.bigEndianUInt16(at: b + 6))
            var addresses: UInt64 = 0
            for offset in stride(from: 8, to: 40, by: 8) {
                addresses |= buffer.bigEndianUInt64(at: a + offset) ^ buffer.bigEndianUInt64(at: b + offset)
            }
            return difference == 0 && addresses == 0
        }
        // Type of service; DF, time to live and protocol; addresses.
        difference |= UInt32(buffer.uint8(at: a + 1) ^ buffer.uint8(at: b + 1))
        difference |= buffer.bigEndianUInt32(at: a + 6) ^ buffer.bigEndianUInt32(at: b + 6)
        return difference == 0 && buffer.bigEndianUInt64(at: a + 12) == buffer.bigEndianUInt64(at: b + 12)
    }

    /// True when the sequence number follows on, and the rest of the TCP header is the same but for FIN, PSH and the checksum.
    @inline(__always)
    private func follows(_ next: JoinableHeaders, in buffer: RawSpan) -> Bool {
        let (a, b) = (first.transport, next.transport)
        let expected =
            buffer.bigEndianUInt32(at: a + 4) &+ UInt32(truncatingIfNeeded: length - first.headersLength)
        // Data offset and reserved bits, other flags, window.
        let ignored = UInt32(TCPFlags([.finish, .push]).rawValue) << 16
        var difference = buffer.bigEndianUInt32(at: b + 4) ^ expected
        difference |= buffer.bigEndianUInt32(at: a + 8) ^ buffer.bigEndianUInt32(at: b + 8)
        difference |= (buffer.bigEndianUInt32(at: a + 12) ^ buffer.bigEndianUInt32(at: b + 12)) & ~ignored
        difference |= UInt32(buffer.bigEndianUInt16(at: a + 18) ^ buffer.bigEndianUInt16(at: b + 18))
        var offset = 20
        while offset < first.headersLength - first.networkLength {
            difference |= buffer.bigEndianUInt32(at: a + offset) ^ buffer.bigEndianUInt32(at: b + offset)
            offset += 4
        }
        return difference == 0
    }

    /// Turns the first packet's headers into those of the super-packet, and returns the virtio header. A group of one keeps its
    /// headers.
    func complete(in buffer: inout MutableRawSpan) -> VirtioNetworkHeader {
        guard segmentCount > 1 else { return VirtioNetworkHeader(flags: isFirstValid == true ? .dataValid : []) }
        let start = first.packet.lowerBound
        if first.isIPv6 {
            buffer.storeBigEndian(UInt16(truncatingIfNeeded: length - 40), at: start + 4)
        } else {
            buffer.storeBigEndian(UInt16(truncatingIfNeeded: length), at: start + 2)
            buffer.storeBigEndian(0 as UInt16, at: start + 10)
            var sum = InternetChecksum()
            sum.add(buffer.bytes.extracting(start..<start + 20))
            buffer.storeBigEndian(sum.checksum, at: start + 10)
        }
        let transportLength = UInt16(truncatingIfNeeded: length - first.networkLength)
        var sum = first.pseudoHeaderSum(in: buffer.bytes)
        sum.add(transportLength)
        let checksumOffset = first.isTCP ? 16 : 6
        buffer.storeBigEndian(sum.folded, at: first.transport + checksumOffset)
        if first.isTCP {
            let flags = buffer.bytes.uint8(at: first.transport + 13) | lastFlags.rawValue
            buffer.store(flags, at: first.transport + 13)
        } else {
            buffer.storeBigEndian(transportLength, at: first.transport + 4)
        }
        var header = VirtioNetworkHeader(flags: .needsChecksum)
        header.segmentation = first.isTCP ? (first.isIPv6 ? .tcpV6 : .tcpV4) : .udp
        header.headerLength = UInt16(truncatingIfNeeded: first.headersLength)
        header.segmentSize = UInt16(truncatingIfNeeded: first.payloadLength)
        header.checksumStart = UInt16(truncatingIfNeeded: first.networkLength)
        header.checksumOffset = UInt16(truncatingIfNeeded: checksumOffset)
        return header
    }
}
