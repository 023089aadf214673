internal import ByteAccess

/// The WireGuard paper's MAC: BLAKE2s keyed with up to 32 bytes, with 16 bytes of output (no truncated longer one).
enum MessageAuthenticationCode {
    /// Its length in bytes.
    static let byteCount = 16

    /// Writes the 16-byte code of `first` followed by `second` to `output`, which may not overlap them.
    static func authenticate(
        key: RawSpan, _ first: RawSpan, _ second: RawSpan = RawSpan(), into output: inout MutableRawSpan
    ) {
        var hash = BLAKE2s(key: key, outputLength: byteCount)
        hash.update(first)
        hash.update(second)
        hash.finalize(into: &output)
    }

    /// True when `code` (16 bytes) is the code of `message`. It takes the same time for every code.
    static func isValid(_ code: RawSpan, of message: RawSpan, key: RawSpan) -> Bool {
        var expected = InlineArray<16, UInt8>(repeating: 0)
        var span = expected.mutableSpan
        var bytes = span.mutableOctets
        authenticate(key: key, message, into: &bytes)
        return constantTimeEqual(code, bytes.bytes)
    }
}
