/// The key of a SvcParam: a number of the IANA registry "Service Parameter Keys (SvcParamKeys)".
public struct ServiceParameterKey: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number as it is on the wire.
    public var rawValue: UInt16

    /// The key with this number.
    @inlinable
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The keys that a client has to understand, 0 (RFC 9460 §8).
    @inlinable public static var mandatory: Self { Self(rawValue: 0) }
    /// Protocols that the service speaks, 1 (RFC 9460 §7.1).
    @inlinable public static var alpn: Self { Self(rawValue: 1) }
    /// The default protocol is not spoken, 2 (RFC 9460 §7.1).
    @inlinable public static var noDefaultALPN: Self { Self(rawValue: 2) }
    /// The port, 3 (RFC 9460 §7.2).
    @inlinable public static var port: Self { Self(rawValue: 3) }
    /// IPv4 addresses, 4 (RFC 9460 §7.3).
    @inlinable public static var ipv4Hint: Self { Self(rawValue: 4) }
    /// The configuration of encrypted ClientHellos, 5 (RFC 9848).
    @inlinable public static var ech: Self { Self(rawValue: 5) }
    /// IPv6 addresses, 6 (RFC 9460 §7.3).
    @inlinable public static var ipv6Hint: Self { Self(rawValue: 6) }
    /// The path of a DoH server, 7 (RFC 9461 §5).
    @inlinable public static var dohPath: Self { Self(rawValue: 7) }
}

/// A set of the keys 0 to 63.
public struct ServiceParameterKeys: OptionSet, Hashable, Sendable, BitwiseCopyable {
    /// One bit for each key, the lowest for key 0.
    public var rawValue: UInt64

    /// The set with these bits.
    @inlinable
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// `alpn` alone.
    @inlinable public static var alpn: Self { Self(rawValue: 1 << 1) }
    /// `no-default-alpn` alone.
    @inlinable public static var noDefaultALPN: Self { Self(rawValue: 1 << 2) }
    /// `ipv4hint` alone.
    @inlinable public static var ipv4Hint: Self { Self(rawValue: 1 << 4) }
    /// `ech` alone.
    @inlinable public static var ech: Self { Self(rawValue: 1 << 5) }
    /// `ipv6hint` alone.
    @inlinable public static var ipv6Hint: Self { Self(rawValue: 1 << 6) }

    /// True when the key is in the set; keys above 63 never are.
    @inlinable
    public func contains(_ key: ServiceParameterKey) -> Bool {
        key.rawValue < 64 && rawValue >> UInt64(key.rawValue) & 1 == 1
    }
}
