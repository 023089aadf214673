import ByteAccess

/// A packet that a TUN device delivered with a virtio header, checked once: one packet, or a TCP or UDP super-packet that stands
/// for many.
///
/// It keeps no bytes: what it learned is enough to write each segment from the packet it was read from. All lengths come from
/// the packet's own headers; of the virtio header only the kind, the segment size and the checksum's position count.
public struct SuperPacket: Sendable {
    /// The IP header of the packet as it came. Its lengths are those of the whole.
    public let ipHeader: IPHeader
    /// How many packets it stands for: 1 to 65,515.
    public private(set) var segmentCount: Int
    /// The length in bytes, headers included, of every segment but the last. A single segment is a last one too, so then it is
    /// the same as ``lastSegmentLength``.
    public private(set) var segmentLength: Int
    /// The length in bytes, headers included, of the last segment: never more than ``segmentLength``.
    public private(set) var lastSegmentLength: Int

    /// What has to be done to each segment.
    enum Form: Equatable, Sendable {
        /// Nothing: the packet is complete.
        case whole
        /// The checksum at `field` over everything from `start` is to be completed.
        case partialChecksum(start: Int, field: Int)
        /// A TCP segment.
        case tcp
        /// A UDP datagram; without a checksum when the whole has none.
        case udp(hasChecksum: Bool)
    }

    let form: Form
    /// Where the TCP or UDP header is.
    let transportOffset: Int
    /// The length of all headers, which every segment starts with.
    let headersLength: Int
    /// The bytes of payload in each segment but the last.
    private(set) var segmentSize: Int
    /// The sum of an IPv4 header without the fields that differ between segments: total length, identification, checksum.
    let networkSum: InternetChecksum
    /// The sum of pseudo-header and transport header without the fields that differ: lengths, sequence number, flags, checksum.
    let transportSum: InternetChecksum

    /// Checks the packet at the start of `packet`, which came with `header`. Bytes behind the packet's own length are ignored.
    public init(parsing packet: RawSpan, header: VirtioNetworkHeader) throws(SegmentationError) {
        if header.segmentation == .none {
            try self.init(unsegmented: packet, header: header)
        } else {
            try self.init(segmented: packet, header: header)
        }
    }

    /// A packet that stands for many, or would if it were longer.
    private init(segmented packet: RawSpan, header: VirtioNetworkHeader) throws(SegmentationError) {
        let layout = try Self.layout(of: packet, for: header.segmentation)
        let isTCP = layout.transportProtocol == .tcp
        let transportOffset = layout.transportOffset
        let total = layout.header.totalLength
        let needsChecksum = header.flags.contains(.needsChecksum)
        if needsChecksum {
            let expected = (transportOffset, isTCP ? 16 : 6)
            guard (Int(header.checksumStart), Int(header.checksumOffset)) == expected else {
                throw .invalidChecksumPosition
            }
        }
        let payload = layout.payload
        guard payload.upperBound == total else { throw .lengthMismatch }
        guard header.segmentSize > 0 else { throw .zeroSegmentSize }
        let size = Int(header.segmentSize)
        let count = max(1, (payload.count + size - 1) / size)
        if isTCP, count > 1 {
            let flags = TCPFlags(rawValue: packet.uint8(at: transportOffset + 13))
            guard flags.isDisjoint(with: [.synchronize, .reset]) else { throw .unsplittableFlags }
        }

        // A pseudo-header has the last destination, which only the sender of a packet with places left to visit has summed.
        var transport = InternetChecksum()
        if layout.hasSegmentsLeft {
            guard needsChecksum else { throw .invalidChecksumPosition }
            transport.add(packet.bigEndianUInt16(at: transportOffset + (isTCP ? 16 : 6)))
            transport.add(~UInt16(truncatingIfNeeded: total - transportOffset))
        } else {
            transport = InternetChecksum(
                pseudoHeaderSource: layout.header.source, destination: layout.header.destination,
                protocol: layout.transportProtocol, length: 0)
        }
        transport.add(packet.extracting(transportOffset..<transportOffset + 4))
        var form = Form.tcp
        if isTCP {
            transport.add(packet.extracting(transportOffset + 8..<transportOffset + 12))
            transport.add(packet.extracting(transportOffset + 14..<transportOffset + 16))
            transport.add(packet.extracting(transportOffset + 18..<payload.lowerBound))
        } else {
            let isAbsent = packet.bigEndianUInt16(at: transportOffset + 6) == 0 && layout.header.version == .v4
            form = .udp(hasChecksum: needsChecksum || !isAbsent)
        }
        var network = InternetChecksum()
        if layout.header.version == .v4 {
            network.add(packet.extracting(0..<2))
            network.add(packet.extracting(6..<10))
            network.add(packet.extracting(12..<layout.header.headerLength))
        }

        ipHeader = layout.header
        segmentCount = count
        lastSegmentLength = payload.lowerBound + payload.count - (count - 1) * size
        segmentLength = count == 1 ? lastSegmentLength : payload.lowerBound + size
        self.form = form
        self.transportOffset = transportOffset
        headersLength = payload.lowerBound
        segmentSize = size
        networkSum = network
        transportSum = transport
    }

    /// A packet that is to be sent as it is, but for its checksum.
    private init(unsegmented packet: RawSpan, header: VirtioNetworkHeader) throws(SegmentationError) {
        do {
            ipHeader = try IPHeader(parsing: packet)
        } catch {
            throw .packet(error)
        }
        if header.flags.contains(.needsChecksum) {
            let (start, field) = (Int(header.checksumStart), Int(header.checksumStart) + Int(header.checksumOffset))
            guard start >= ipHeader.headerLength, field + 2 <= ipHeader.totalLength else {
                throw .invalidChecksumPosition
            }
            form = .partialChecksum(start: start, field: field)
        } else {
            form = .whole
        }
        segmentCount = 1
        segmentLength = ipHeader.totalLength
        lastSegmentLength = ipHeader.totalLength
        transportOffset = 0
        headersLength = ipHeader.totalLength
        segmentSize = 0
        networkSum = InternetChecksum()
        transportSum = InternetChecksum()
    }

    /// Where the parts of a packet to be segmented are; it has to be of the announced kind.
    private static func layout(
        of packet: RawSpan, for segmentation: VirtioNetworkHeader.Segmentation
    ) throws(SegmentationError) -> PacketLayout {
        let layout: PacketLayout
        do {
            layout = try PacketLayout(parsing: packet)
        } catch {
            throw .packet(error)
        }
        let isExpected =
            switch segmentation {
            case .none: false
            case .tcpV4: layout.header.version == .v4 && layout.transportProtocol == .tcp
            case .tcpV6: layout.header.version == .v6 && layout.transportProtocol == .tcp
            case .udp: layout.transportProtocol == .udp
            }
        guard isExpected else { throw .protocolMismatch }
        guard layout.fragment.isWhole else { throw .fragment }
        return layout
    }

    /// The length in bytes, headers included, of the segment at `index`, which counts from zero.
    @inlinable
    public func length(of index: Int) -> Int {
        index == segmentCount - 1 ? lastSegmentLength : segmentLength
    }

    /// The same packet in segments of at most `length` bytes, headers included. TCP does not care where a stream is cut, so that a
    /// sender who knows of a narrow way can cut it finer than it was asked to.
    ///
    /// Anything but a TCP super-packet stays as it is: datagrams have borders. So does one whose segments could be told apart
    /// by their IPv4 identifications alone (without DF, RFC 6864 section 4.1): there would be more of them than were set aside.
    ///
    /// - Parameter packet: The packet that this describes.
    public func cut(to length: Int, _ packet: RawSpan) -> SuperPacket {
        let size = length - headersLength
        guard form == .tcp, segmentCount > 1, segmentLength > length, size >= Self.leastCut,
            ipHeader.version == .v6 || packet.bigEndianUInt16(at: 6) & 0x4000 != 0
        else { return self }
        let payload = (segmentCount - 1) * segmentSize + lastSegmentLength - headersLength
        var result = self
        result.segmentSize = size
        result.segmentCount = (payload + size - 1) / size
        result.segmentLength = headersLength + size
        result.lastSegmentLength = headersLength + payload - (result.segmentCount - 1) * size
        return result
    }

    /// Below so many bytes of payload in a segment, cutting costs more than it helps.
    private static let leastCut = 512
}
