import ByteAccess

/// A UDP datagram (RFC 768) whose length has been checked: no accessor traps.
public struct UDPDatagramView: ~Escapable {
    /// The datagram: header and payload, without what was behind it.
    public let bytes: RawSpan

    /// Checks the length: at least the eight bytes of the header, at most all of `bytes`, which is everything behind the IP
    /// headers. It may be less: the rest is not the datagram's (RFC 9868 calls it the surplus area). Zero, which means the
    /// rest of a jumbogram (RFC 2675 §4), is refused. The checksum is not looked at.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount >= 8 else { throw .truncated }
        let length = Int(bytes.bigEndianUInt16(at: 4))
        guard length >= 8 else { throw .invalidTotalLength }
        guard length <= bytes.byteCount else { throw .truncated }
        self.bytes = bytes.extracting(..<length)
    }

    /// The port it comes from; zero when there is none to answer to.
    public var sourcePort: UInt16 { bytes.bigEndianUInt16(at: 0) }

    /// The port it goes to.
    public var destinationPort: UInt16 { bytes.bigEndianUInt16(at: 2) }

    /// The checksum as it is in the datagram; zero says there is none, which IPv6 does not allow (RFC 8200 §8.1).
    public var checksum: UInt16 { bytes.bigEndianUInt16(at: 6) }

    /// The payload.
    public var payload: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(8...) }
    }
}
