import ByteAccess

/// What the checksum of a packet's transport header turned out to be.
public enum TransportChecksum: Hashable, Sendable {
    /// It is right.
    case valid
    /// It is wrong, or missing where there must be one.
    case invalid
    /// It is a UDP datagram over IPv4 without one.
    case absent
    /// It cannot be told: a fragment, another protocol, or an IPv6 packet whose last destination is in a routing header.
    case notApplicable
}

extension PacketLayout {
    /// Checks the TCP, UDP, ICMP or ICMPv6 checksum of the packet that this layout was read from.
    public func transportChecksum(of packet: RawSpan) -> TransportChecksum {
        guard let field = checksumField, header.totalLength <= packet.byteCount else { return .notApplicable }
        if transportProtocol == .udp, packet.bigEndianUInt16(at: field) == 0 {
            return header.version == .v4 ? .absent : .invalid
        }
        return transportSum(of: packet).folded == 0xFFFF ? .valid : .invalid
    }

    /// Computes and writes the TCP, UDP, ICMP or ICMPv6 checksum of the packet that this layout was read from. False, and
    /// nothing written, where ``transportChecksum(of:)`` says `notApplicable`.
    public func writeTransportChecksum(in packet: inout MutableRawSpan) -> Bool {
        guard let field = checksumField, header.totalLength <= packet.byteCount else { return false }
        packet.storeBigEndian(0 as UInt16, at: field)
        let sum = transportSum(of: packet.bytes)
        packet.storeBigEndian(transportProtocol == .udp ? sum.nonzeroChecksum : sum.checksum, at: field)
        return true
    }

    /// Where the checksum is; nil when this packet alone does not decide it.
    private var checksumField: Int? {
        guard fragment.isWhole, !hasSegmentsLeft else { return nil }
        switch (transportProtocol, header.version) {
        case (.tcp, _): return transportOffset + 16
        case (.udp, _): return transportOffset + 6
        case (.icmpv4, .v4), (.icmpv6, .v6): return transportOffset + 2
        default: return nil
        }
    }

    /// The sum of the transport header, its payload and the pseudo-header, which only ICMP for IPv4 has not.
    private func transportSum(of packet: RawSpan) -> InternetChecksum {
        let end = transportProtocol == .udp ? payload.upperBound : header.totalLength
        var sum =
            transportProtocol == .icmpv4
            ? InternetChecksum()
            : InternetChecksum(
                pseudoHeaderSource: header.source, destination: header.destination, protocol: transportProtocol,
                length: end - transportOffset)
        sum.add(packet.extracting(transportOffset..<end))
        return sum
    }
}

extension InternetChecksum {
    /// Finishes a checksum that the kernel left partial, as a virtio header with NEEDS_CSUM asks: the 16 bits at `start` +
    /// `offset` hold the sum of the pseudo-header; they become the checksum of everything from `start` to the end of `packet`,
    /// with 0xFFFF for zero. `packet` ends where its IP header says. Throws, and changes nothing, when they lie outside it.
    public static func complete(
        in packet: inout MutableRawSpan, start: Int, offset: Int
    ) throws(IPPacketError) {
        let count = packet.byteCount
        guard start >= 0, start <= count, offset >= 0, count - start >= 2, offset <= count - start - 2 else {
            throw .truncated
        }
        var sum = InternetChecksum()
        sum.add(packet.bytes.extracting(start...))
        packet.storeBigEndian(sum.nonzeroChecksum, at: start + offset)
    }
}
