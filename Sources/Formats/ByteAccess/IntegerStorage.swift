extension Span where Element: FixedWidthInteger & BitwiseCopyable {
    /// The bytes of the integers, in memory order.
    @_alwaysEmitIntoClient
    public var octets: RawSpan {
        @_lifetime(copy self)
        get {
            // Integers have no padding: every byte is initialized.
            unsafe bytes
        }
    }
}

extension MutableSpan where Element: FixedWidthInteger & BitwiseCopyable {
    /// The bytes of the integers, in memory order, to be changed in place.
    @_alwaysEmitIntoClient
    public var mutableOctets: MutableRawSpan {
        @_lifetime(&self)
        mutating get {
            // Every bit pattern is a valid integer, and integers have no padding.
            unsafe mutableBytes
        }
    }
}
