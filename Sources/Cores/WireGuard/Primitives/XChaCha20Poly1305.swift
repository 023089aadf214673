internal import ByteAccess

enum XChaCha20Poly1305 {
    /// Encrypts `plaintext`. Key 32 bytes, nonce 24 bytes; output exactly 16 bytes longer than the plaintext.
    static func seal(
        key: RawSpan, nonce: RawSpan, plaintext: RawSpan, authenticatedData: RawSpan,
        into output: inout MutableRawSpan, using cryptography: some Cryptography
    ) {
    }

    /// False, with `output` zeroed, when the tag does not fit. Output exactly 16 bytes shorter than the ciphertext.
    static func open(
        key: RawSpan, nonce: RawSpan, ciphertext: RawSpan, authenticatedData: RawSpan,
        into output: inout MutableRawSpan, using cryptography: some Cryptography
    ) -> Bool {
        false
    }
}
