internal import ByteAccess

/// The paper's MAC: BLAKE2s keyed with up to 32 bytes and with 16 bytes of output.
enum MessageAuthenticationCode {
    /// Its length in bytes.
    static let byteCount = 16

    /// Writes the 16-byte code of `first` followed by `second` to `output`, which may not overlap them.
    static func authenticate(
        key: RawSpan, _ first: RawSpan, _ second: RawSpan = RawSpan(), into output: inout MutableRawSpan
    ) {
    }

    /// True when `code` (16 bytes) is the code of `message`; takes the same time for every code.
    static func isValid(_ code: RawSpan, of message: RawSpan, key: RawSpan) -> Bool {
        false
    }
}
