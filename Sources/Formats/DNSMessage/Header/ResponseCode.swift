/// How a query went: the four bits of the header, with eight more above them in the OPT record (RFC 6891 §6.1.3).
public struct ResponseCode: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number, 0 to 4095.
    public var rawValue: UInt16

    /// The code with this number, of which the low twelve bits count.
    @inlinable
    public init(rawValue: UInt16) {
        self.rawValue = rawValue & 0xFFF
    }

    /// NOERROR, 0.
    @inlinable public static var noError: Self { Self(rawValue: 0) }
    /// FORMERR, 1.
    @inlinable public static var formatError: Self { Self(rawValue: 1) }
    /// SERVFAIL, 2.
    @inlinable public static var serverFailure: Self { Self(rawValue: 2) }
    /// NXDOMAIN, 3.
    @inlinable public static var nameError: Self { Self(rawValue: 3) }
    /// NOTIMP, 4.
    @inlinable public static var notImplemented: Self { Self(rawValue: 4) }
    /// REFUSED, 5.
    @inlinable public static var refused: Self { Self(rawValue: 5) }
    /// NOTAUTH, 9 (RFC 2136 §2.2).
    @inlinable public static var notAuthoritative: Self { Self(rawValue: 9) }
    /// BADVERS, 16: not without an OPT record.
    @inlinable public static var badVersion: Self { Self(rawValue: 16) }
    /// BADCOOKIE, 23 (RFC 7873 §8): not without an OPT record.
    @inlinable public static var badCookie: Self { Self(rawValue: 23) }

    /// The four bits that go into the header.
    @inlinable var headerBits: UInt16 { rawValue & 0xF }
    /// The eight bits that go into the OPT record.
    @inlinable var extendedBits: UInt8 { UInt8(truncatingIfNeeded: rawValue >> 4) }
}
