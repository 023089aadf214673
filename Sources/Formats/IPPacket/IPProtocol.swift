/// A number of the IANA protocol registry: IPv4's protocol field, IPv6's next header.
public struct IPProtocol: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number as it is on the wire.
    public var rawValue: UInt8

    /// The protocol with this number.
    @inlinable
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// IPv6 hop-by-hop options, 0 (RFC 8200 §4.3).
    @inlinable public static var hopByHopOptions: Self { Self(rawValue: 0) }
    /// ICMP for IPv4, 1 (RFC 792).
    @inlinable public static var icmpv4: Self { Self(rawValue: 1) }
    /// TCP, 6 (RFC 9293).
    @inlinable public static var tcp: Self { Self(rawValue: 6) }
    /// UDP, 17 (RFC 768).
    @inlinable public static var udp: Self { Self(rawValue: 17) }
    /// IPv6 routing header, 43 (RFC 8200 §4.4).
    @inlinable public static var routing: Self { Self(rawValue: 43) }
    /// IPv6 fragment header, 44 (RFC 8200 §4.5).
    @inlinable public static var fragment: Self { Self(rawValue: 44) }
    /// Encapsulating security payload, 50 (RFC 4303).
    @inlinable public static var encapsulatingSecurityPayload: Self { Self(rawValue: 50) }
    /// Authentication header, 51 (RFC 4302).
    @inlinable public static var authenticationHeader: Self { Self(rawValue: 51) }
    /// ICMPv6, 58 (RFC 4443).
    @inlinable public static var icmpv6: Self { Self(rawValue: 58) }
    /// Nothing follows, 59 (RFC 8200 §4.7).
    @inlinable public static var noNextHeader: Self { Self(rawValue: 59) }
    /// IPv6 destination options, 60 (RFC 8200 §4.6).
    @inlinable public static var destinationOptions: Self { Self(rawValue: 60) }
}
