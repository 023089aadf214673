import ByteAccess

/// A whole IPv4 packet or fragment (RFC 791) whose lengths have been checked: no accessor traps.
public struct IPv4PacketView: ~Escapable {
    /// The packet, without what was behind it.
    public let bytes: RawSpan
    /// The fields of the fixed header.
    public let header: IPHeader

    /// Checks version, header length and total length. The checksum is not part of it: see ``hasValidHeaderChecksum``.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount > 0 else { throw .truncated }
        guard bytes.uint8(at: 0) >> 4 == 4 else { throw .unknownVersion }
        header = try IPHeader(parsingIPv4: bytes)
        self.bytes = bytes.extracting(..<header.totalLength)
    }

    /// The identification that all fragments of a datagram share.
    public var identification: UInt16 { bytes.bigEndianUInt16(at: 4) }

    /// True when routers may not fragment the packet.
    public var dontFragment: Bool { bytes.uint8(at: 6) & 0x40 != 0 }

    /// Where the packet belongs in its datagram.
    public var fragment: FragmentPosition { FragmentPosition(ipv4: bytes.bigEndianUInt16(at: 6)) }

    /// The header checksum as it is in the packet.
    public var headerChecksum: UInt16 { bytes.bigEndianUInt16(at: 10) }

    /// True when the header checksum is right.
    public var hasValidHeaderChecksum: Bool {
        var checksum = InternetChecksum()
        checksum.add(bytes.extracting(..<header.headerLength))
        return checksum.folded == 0xFFFF
    }

    /// The options, undecoded: 0 to 40 bytes.
    public var options: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(20..<header.headerLength) }
    }

    /// What is behind the header: a transport header and its payload, or a part of them.
    public var payload: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(header.headerLength...) }
    }
}
