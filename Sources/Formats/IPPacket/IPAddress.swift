/// An IPv4 address.
public struct IPv4Address: Hashable, Sendable {
    /// The address as one integer in host order: 192.0.2.1 is 0xC000_0201.
    public var bits: UInt32

    /// The address whose bits, in host order, are `bits`.
    @inlinable
    public init(bits: UInt32) {
        self.bits = bits
    }
}

/// An IPv6 address, without a scope.
public struct IPv6Address: Hashable, Sendable {
    /// The first eight octets as one integer in host order.
    public var high: UInt64
    /// The last eight octets as one integer in host order.
    public var low: UInt64

    /// The address whose halves, in host order, are `high` and `low`.
    @inlinable
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
}

/// An address of either family.
public enum IPAddress: Hashable, Sendable {
    case v4(IPv4Address)
    case v6(IPv6Address)
}
