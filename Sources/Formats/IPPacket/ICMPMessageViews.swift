import ByteAccess

/// An ICMP message for IPv4 (RFC 792) that has the eight bytes that all of them have: no accessor traps.
public struct ICMPv4MessageView: ~Escapable {
    /// The message.
    public let bytes: RawSpan

    /// Checks the length. `bytes` is everything behind the IP header. The checksum is not looked at.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount >= 8 else { throw .truncated }
        self.bytes = bytes
    }

    /// The type.
    public var type: UInt8 { bytes.uint8(at: 0) }

    /// The code within the type.
    public var code: UInt8 { bytes.uint8(at: 1) }

    /// The checksum as it is in the message.
    public var checksum: UInt16 { bytes.bigEndianUInt16(at: 2) }

    /// True for messages about another packet, which must not be answered with one (RFC 1122 §3.2.2): destination unreachable,
    /// source quench, redirect, time exceeded and parameter problem.
    public var isError: Bool {
        switch type {
        case 3, 4, 5, 11, 12: true
        default: false
        }
    }

    /// The identifier of an echo request or reply; nil for other types.
    public var echoIdentifier: UInt16? { type == 8 || type == 0 ? bytes.bigEndianUInt16(at: 4) : nil }

    /// The sequence number of an echo request or reply; nil for other types.
    public var echoSequenceNumber: UInt16? { type == 8 || type == 0 ? bytes.bigEndianUInt16(at: 6) : nil }

    /// What is behind the eight bytes: an echo's data, or the start of the packet that an error is about.
    public var body: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(8...) }
    }
}

/// An ICMPv6 message (RFC 4443 §2.1) that has the four bytes that all of them have: no accessor traps.
public struct ICMPv6MessageView: ~Escapable {
    /// The message.
    public let bytes: RawSpan

    /// Checks the length. `bytes` is everything behind the IPv6 headers. The checksum is not looked at.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount >= 4 else { throw .truncated }
        self.bytes = bytes
    }

    /// The type.
    public var type: UInt8 { bytes.uint8(at: 0) }

    /// The code within the type.
    public var code: UInt8 { bytes.uint8(at: 1) }

    /// The checksum as it is in the message.
    public var checksum: UInt16 { bytes.bigEndianUInt16(at: 2) }

    /// True for messages about another packet, which must not be answered with one: types below 128 (RFC 4443 §2.1).
    public var isError: Bool { type < 128 }

    /// The identifier of an echo request or reply; nil for other types and for echoes that are too short.
    public var echoIdentifier: UInt16? { isEcho ? bytes.bigEndianUInt16(at: 4) : nil }

    /// The sequence number of an echo request or reply; nil for other types and for echoes that are too short.
    public var echoSequenceNumber: UInt16? { isEcho ? bytes.bigEndianUInt16(at: 6) : nil }

    private var isEcho: Bool { (type == 128 || type == 129) && bytes.byteCount >= 8 }

    /// What is behind the first four bytes. In an error the packet that it is about starts four bytes later.
    public var body: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(4...) }
    }
}
