extension [UInt8] {
    /// The bytes of a span.
    init(copying bytes: RawSpan) {
        // Every bit pattern is a byte.
        self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }
}
