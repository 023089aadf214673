import ByteAccess

/// Why an answer is what it is: the INFO-CODE of an extended error (RFC 8914 §4).
public struct ExtendedErrorCode: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number as it is on the wire.
    public var rawValue: UInt16

    /// The reason with this number.
    @inlinable
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Another reason, 0.
    @inlinable public static var other: Self { Self(rawValue: 0) }
    /// The answer is from the cache and too old, 3.
    @inlinable public static var staleAnswer: Self { Self(rawValue: 3) }
    /// The answer is made up by policy, 4.
    @inlinable public static var forgedAnswer: Self { Self(rawValue: 4) }
    /// Signatures do not fit, 6.
    @inlinable public static var dnssecBogus: Self { Self(rawValue: 6) }
    /// The failure was cached, 13.
    @inlinable public static var cachedError: Self { Self(rawValue: 13) }
    /// The server is not ready, 14.
    @inlinable public static var notReady: Self { Self(rawValue: 14) }
    /// The operator blocks the name, 15.
    @inlinable public static var blocked: Self { Self(rawValue: 15) }
    /// Someone outside requires the name to be blocked, 16.
    @inlinable public static var censored: Self { Self(rawValue: 16) }
    /// The client asked for the name to be blocked, 17.
    @inlinable public static var filtered: Self { Self(rawValue: 17) }
    /// The client may not ask, 18.
    @inlinable public static var prohibited: Self { Self(rawValue: 18) }
    /// The absence is proved, but too old, 19.
    @inlinable public static var staleNXDomainAnswer: Self { Self(rawValue: 19) }
    /// The query is not supported, 21.
    @inlinable public static var notSupported: Self { Self(rawValue: 21) }
    /// No server could be reached, 22.
    @inlinable public static var noReachableAuthority: Self { Self(rawValue: 22) }
    /// The network failed, 23.
    @inlinable public static var networkError: Self { Self(rawValue: 23) }
    /// A server's data is invalid, 24.
    @inlinable public static var invalidData: Self { Self(rawValue: 24) }
}

/// An extended error of a checked message (RFC 8914 §2).
public struct ExtendedErrorView: ~Escapable {
    private let value: RawSpan

    /// A view of an option's value, which has two bytes at least.
    @_lifetime(copy value)
    init(_ value: RawSpan) {
        self.value = value
    }

    /// INFO-CODE.
    public var code: ExtendedErrorCode { ExtendedErrorCode(rawValue: value.bigEndianUInt16(at: 0)) }

    /// EXTRA-TEXT: UTF-8, as the sender says. It need not be, and may end in a zero.
    public var text: RawSpan {
        @_lifetime(copy self)
        get { value.extracting(2...) }
    }
}

/// An extended error to be written (RFC 8914 §2).
public struct ExtendedError: Hashable, Sendable {
    /// INFO-CODE.
    public var code: ExtendedErrorCode
    /// EXTRA-TEXT, for people. It is left out when space is short.
    public var text: String

    /// An error with a code and, when there is something to say, a text.
    public init(_ code: ExtendedErrorCode, text: String = "") {
        self.code = code
        self.text = text
    }
}
