public import ByteAccess

/// What the fixed part of an IPv4 (RFC 791 §3.1) or IPv6 (RFC 8200 §3) header says, its lengths checked against the bytes.
///
/// This is all that routing a packet needs. The IPv4 header checksum is not checked: see ``IPv4PacketView``.
public struct IPHeader: Equatable, Sendable, BitwiseCopyable {
    /// The source address.
    public let source: IPAddress
    /// The destination address.
    public let destination: IPAddress
    /// The length in bytes of the IPv4 header with its options (20 to 60), or of the IPv6 header without extensions (40).
    public let headerLength: Int
    /// The length in bytes of the whole packet as the header gives it: `headerLength` to 65,575, and no more than the bytes
    /// that were parsed. What is behind it is padding.
    public let totalLength: Int
    /// IPv4's type of service, IPv6's traffic class: six bits DSCP, two bits ECN.
    public let trafficClass: UInt8
    /// IPv4's time to live, IPv6's hop limit.
    public let hopLimit: UInt8
    /// IPv4's protocol, or IPv6's next header, which may be an extension header.
    public let protocolNumber: IPProtocol

    /// The version of IP.
    @inlinable
    public var version: IPVersion { source.version }

    /// The ECN bits of the traffic class.
    @inlinable
    public var ecn: ExplicitCongestionNotification { ExplicitCongestionNotification(trafficClass: trafficClass) }

    /// Reads the header at the start of `bytes`. Bytes behind the packet are allowed.
    @inlinable
    public init(parsing bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount > 0 else { throw .truncated }
        switch bytes.uint8(at: 0) >> 4 {
        case 4: try self.init(parsingIPv4: bytes)
        case 6: try self.init(parsingIPv6: bytes)
        default: throw .unknownVersion
        }
    }

    /// Reads an IPv4 header; the version is not looked at again.
    @inlinable
    init(parsingIPv4 bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount >= 20 else { throw .truncated }
        headerLength = Int(bytes.uint8(at: 0) & 0xF) * 4
        totalLength = Int(bytes.bigEndianUInt16(at: 2))
        guard headerLength >= 20 else { throw .invalidHeaderLength }
        guard totalLength >= headerLength else { throw .invalidTotalLength }
        guard totalLength <= bytes.byteCount else { throw .truncated }
        trafficClass = bytes.uint8(at: 1)
        hopLimit = bytes.uint8(at: 8)
        protocolNumber = IPProtocol(rawValue: bytes.uint8(at: 9))
        source = .v4(bytes.ipv4Address(at: 12))
        destination = .v4(bytes.ipv4Address(at: 16))
    }

    /// Reads an IPv6 header; the version is not looked at again.
    @inlinable
    init(parsingIPv6 bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount >= 40 else { throw .truncated }
        let payloadLength = Int(bytes.bigEndianUInt16(at: 4))
        headerLength = 40
        totalLength = 40 + payloadLength
        guard totalLength <= bytes.byteCount else { throw .truncated }
        trafficClass = UInt8(truncatingIfNeeded: bytes.bigEndianUInt16(at: 0) >> 4)
        protocolNumber = IPProtocol(rawValue: bytes.uint8(at: 6))
        hopLimit = bytes.uint8(at: 7)
        // Zero is a real length only when nothing follows; a hop-by-hop header would be at least eight bytes of payload.
        guard payloadLength > 0 || protocolNumber != .hopByHopOptions else { throw .jumbogram }
        source = .v6(bytes.ipv6Address(at: 8))
        destination = .v6(bytes.ipv6Address(at: 24))
    }
}
