/// Where a packet belongs in the datagram that it may be a fragment of (RFC 791 §3.2, RFC 8200 §4.5).
public struct FragmentPosition: Equatable, Sendable, BitwiseCopyable {
    /// How many bytes of the datagram are before this packet's: a multiple of eight up to 65,528.
    public let offset: Int
    /// True when another fragment follows.
    public let moreFollow: Bool

    /// The position that the 16 bits of an IPv4 header at byte 6 give: three flags, and the offset in units of eight bytes.
    @inlinable
    init(ipv4 field: UInt16) {
        offset = Int(field & 0x1FFF) * 8
        moreFollow = field & 0x2000 != 0
    }

    /// The position that the 16 bits of an IPv6 fragment header at byte 2 give: the offset, two reserved bits, one flag.
    @inlinable
    init(ipv6 field: UInt16) {
        offset = Int(field & 0xFFF8)
        moreFollow = field & 1 != 0
    }

    /// The position of a whole datagram.
    @inlinable
    static var whole: Self { Self(ipv4: 0) }

    /// True when the packet is a whole datagram.
    @inlinable
    public var isWhole: Bool { offset == 0 && !moreFollow }

    /// True when the transport header starts in this packet: it is whole, or the first fragment.
    @inlinable
    public var holdsTransportHeader: Bool { offset == 0 }
}
