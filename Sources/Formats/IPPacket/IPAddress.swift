/// An address of either family.
public enum IPAddress: Hashable, Sendable, BitwiseCopyable {
    case v4(IPv4Address)
    case v6(IPv6Address)

    /// The version of IP that the address belongs to.
    @inlinable
    public var version: IPVersion {
        switch self {
        case .v4: .v4
        case .v6: .v6
        }
    }

    /// The number of bits: 32 or 128.
    @inlinable
    public var bitWidth: Int {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }

    /// True for 0.0.0.0 and `::`.
    @inlinable
    public var isUnspecified: Bool {
        switch self {
        case .v4(let address): address.isUnspecified
        case .v6(let address): address.isUnspecified
        }
    }

    /// True for 127.0.0.0/8 and `::1`.
    @inlinable
    public var isLoopback: Bool {
        switch self {
        case .v4(let address): address.isLoopback
        case .v6(let address): address.isLoopback
        }
    }

    /// True for 224.0.0.0/4 and ff00::/8.
    @inlinable
    public var isMulticast: Bool {
        switch self {
        case .v4(let address): address.isMulticast
        case .v6(let address): address.isMulticast
        }
    }

    /// True for 169.254.0.0/16 and fe80::/10.
    @inlinable
    public var isLinkLocal: Bool {
        switch self {
        case .v4(let address): address.isLinkLocal
        case .v6(let address): address.isLinkLocal
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted decimal, or the canonical text of RFC 5952.
    public var description: String {
        switch self {
        case .v4(let address): address.description
        case .v6(let address): address.description
        }
    }
}

/// The version field of an IP header.
public enum IPVersion: UInt8, Hashable, Sendable, BitwiseCopyable {
    case v4 = 4
    case v6 = 6
}
