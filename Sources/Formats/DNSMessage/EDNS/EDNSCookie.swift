import ByteAccess

/// A DNS cookie (RFC 7873 §4): eight bytes of the client's, and none or 8 to 32 of the server's.
public struct EDNSCookie: Sendable {
    private var octets = InlineArray<40, UInt8>(repeating: 0)
    private var count = 0

    /// Reads an option's value of 8 or 16 to 40 bytes.
    public init(parsing value: RawSpan) throws(DNSMessageError) {
        guard value.byteCount == 8 || 16...40 ~= value.byteCount else { throw .invalidCookie }
        for index in 0..<value.byteCount { octets[index] = value.uint8(at: index) }
        count = value.byteCount
    }

    /// The whole cookie.
    public var bytes: RawSpan {
        @_lifetime(borrow self)
        get { octets.span.octets.extracting(..<count) }
    }

    /// True when there is no server's part.
    public var isClientOnly: Bool { count == 8 }
}
