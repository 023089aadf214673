import ByteAccess

/// Where the parts of a packet are and which flow it belongs to, found in one pass.
///
/// All offsets count from the start of the packet, and none is beyond `header.totalLength`.
public struct PacketLayout: Equatable, Sendable {
    /// The fields of the fixed IP header.
    public let header: IPHeader
    /// What is behind the IPv4 header, or behind the IPv6 extension headers.
    public let transportProtocol: IPProtocol
    /// Where it is.
    public let transportOffset: Int
    /// What is behind the TCP, UDP or ICMP header. For other protocols, and for fragments other than the first, it is all that
    /// is behind the IP headers. In a whole UDP datagram it ends where the datagram's own length says.
    public let payload: Range<Int>
    /// Where the packet belongs in its datagram.
    public let fragment: FragmentPosition
    /// The flow; nil for fragments other than the first, which have no ports.
    public let fiveTuple: FiveTuple?
    /// True when an IPv6 routing header still names places to visit.
    public let hasSegmentsLeft: Bool

    /// Reads the IP and transport headers at the start of `bytes`. Bytes behind the packet are allowed.
    public init(parsing bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount > 0 else { throw .truncated }
        if bytes.uint8(at: 0) >> 4 == 6 {
            let view = try IPv6PacketView(checking: bytes)
            header = view.header
            transportProtocol = view.upperLayerProtocol
            transportOffset = view.upperLayerOffset
            fragment = view.fragment
            hasSegmentsLeft = view.hasSegmentsLeft
        } else {
            header = try IPHeader(parsing: bytes)
            transportProtocol = header.protocolNumber
            transportOffset = header.headerLength
            fragment = FragmentPosition(ipv4: bytes.bigEndianUInt16(at: 6))
            hasSegmentsLeft = false
        }
        guard fragment.holdsTransportHeader else {
            payload = transportOffset..<header.totalLength
            fiveTuple = nil
            return
        }

        let transport = bytes.extracting(transportOffset..<header.totalLength)
        var ports: (source: UInt16, destination: UInt16) = (0, 0)
        var payload = 0..<transport.byteCount
        switch (transportProtocol, header.version) {
        case (.tcp, _):
            let segment = try TCPSegmentView(checking: transport)
            ports = (segment.sourcePort, segment.destinationPort)
            payload = segment.headerLength..<transport.byteCount
        case (.udp, _) where fragment.isWhole:
            let datagram = try UDPDatagramView(checking: transport)
            ports = (datagram.sourcePort, datagram.destinationPort)
            payload = 8..<datagram.bytes.byteCount
        case (.udp, _):
            // The length is that of the whole datagram, of which this is the beginning.
            guard transport.byteCount >= 8 else { throw .truncated }
            ports = (transport.bigEndianUInt16(at: 0), transport.bigEndianUInt16(at: 2))
            payload = 8..<transport.byteCount
        case (.icmpv4, .v4):
            let message = try ICMPv4MessageView(checking: transport)
            if let identifier = message.echoIdentifier { ports = (identifier, identifier) }
            payload = 8..<transport.byteCount
        case (.icmpv6, .v6):
            let message = try ICMPv6MessageView(checking: transport)
            if let identifier = message.echoIdentifier { ports = (identifier, identifier) }
            payload = min(8, transport.byteCount)..<transport.byteCount
        default: break
        }
        self.payload = transportOffset + payload.lowerBound..<transportOffset + payload.upperBound
        fiveTuple = FiveTuple(
            source: header.source, destination: header.destination, sourcePort: ports.source,
            destinationPort: ports.destination, protocolNumber: transportProtocol)
    }
}
