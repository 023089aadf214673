/// The kind of a query: four bits of the header (RFC 1035 §4.1.1).
public struct Opcode: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number as it is in the header, 0 to 15.
    public var rawValue: UInt8

    /// The opcode with this number, of which the low four bits count.
    @inlinable
    public init(rawValue: UInt8) {
        self.rawValue = rawValue & 0xF
    }

    /// A standard query, 0.
    @inlinable public static var query: Self { Self(rawValue: 0) }
    /// An inverse query, 1, obsolete (RFC 3425).
    @inlinable public static var inverseQuery: Self { Self(rawValue: 1) }
    /// A server's status, 2.
    @inlinable public static var status: Self { Self(rawValue: 2) }
    /// A zone has changed, 4 (RFC 1996).
    @inlinable public static var notify: Self { Self(rawValue: 4) }
    /// A dynamic update, 5 (RFC 2136).
    @inlinable public static var update: Self { Self(rawValue: 5) }
    /// Stateful operations, 6 (RFC 8490).
    @inlinable public static var statefulOperations: Self { Self(rawValue: 6) }
}
