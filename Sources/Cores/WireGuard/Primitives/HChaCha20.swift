internal import ByteAccess

enum HChaCha20 {
    /// Writes the 32-byte subkey of `key` (32 bytes) and `nonce` (16 bytes) to `subkey`.
    static func deriveKey(from key: RawSpan, nonce: RawSpan, into subkey: inout MutableRawSpan) {
    }
}
