/// What an EDNS option is: a number of the IANA registry "DNS EDNS0 Option Codes (OPT)".
public struct EDNSOptionCode: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number as it is on the wire.
    public var rawValue: UInt16

    /// The option with this number.
    @inlinable
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The name server's identifier, 3 (RFC 5001).
    @inlinable public static var nameServerIdentifier: Self { Self(rawValue: 3) }
    /// The client's subnet, 8 (RFC 7871).
    @inlinable public static var clientSubnet: Self { Self(rawValue: 8) }
    /// A cookie, 10 (RFC 7873).
    @inlinable public static var cookie: Self { Self(rawValue: 10) }
    /// How long a TCP connection may be idle, 11 (RFC 7828).
    @inlinable public static var tcpKeepalive: Self { Self(rawValue: 11) }
    /// Padding, 12 (RFC 7830).
    @inlinable public static var padding: Self { Self(rawValue: 12) }
    /// An extended error, 15 (RFC 8914).
    @inlinable public static var extendedError: Self { Self(rawValue: 15) }
}
