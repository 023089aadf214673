/// An IPv4 address.
public struct IPv4Address: Hashable, Sendable, BitwiseCopyable {
    /// The address as one integer in host order: 192.0.2.1 is 0xC000_0201.
    public var bits: UInt32

    /// The address whose bits, in host order, are `bits`.
    @inlinable
    public init(bits: UInt32) {
        self.bits = bits
    }

    /// The address a.b.c.d.
    @inlinable
    public init(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) {
        bits = UInt32(a) << 24 | UInt32(b) << 16 | UInt32(c) << 8 | UInt32(d)
    }

    /// 0.0.0.0.
    @inlinable
    public static var unspecified: Self { Self(bits: 0) }

    /// 255.255.255.255, the limited broadcast (RFC 919).
    @inlinable
    public static var broadcast: Self { Self(bits: .max) }

    /// True for 0.0.0.0.
    @inlinable
    public var isUnspecified: Bool { bits == 0 }

    /// True for 127.0.0.0/8 (RFC 1122 §3.2.1.3).
    @inlinable
    public var isLoopback: Bool { bits >> 24 == 127 }

    /// True for 224.0.0.0/4 (RFC 5771).
    @inlinable
    public var isMulticast: Bool { bits >> 28 == 0xE }

    /// True for 169.254.0.0/16 (RFC 3927).
    @inlinable
    public var isLinkLocal: Bool { bits >> 16 == 0xA9FE }

    /// True for 255.255.255.255. The broadcast address of a subnet cannot be told from the address alone.
    @inlinable
    public var isBroadcast: Bool { bits == .max }

    /// True for 240.0.0.0/4 without the limited broadcast (RFC 1112 §4: class E).
    @inlinable
    public var isReserved: Bool { bits >> 28 == 0xF && !isBroadcast }
}

extension IPv4Address: CustomStringConvertible {
    /// Four decimal numbers with dots.
    public var description: String {
        "\(bits >> 24).\(bits >> 16 & 0xFF).\(bits >> 8 & 0xFF).\(bits & 0xFF)"
    }
}
