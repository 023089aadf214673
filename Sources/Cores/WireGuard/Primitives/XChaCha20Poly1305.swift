internal import ByteAccess

/// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha section 2.3): ChaCha20-Poly1305 with a nonce long enough to be random.
enum XChaCha20Poly1305 {
    /// Encrypts `plaintext` and authenticates it together with `authenticatedData`.
    ///
    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - nonce: 24 bytes.
    ///   - output: exactly 16 bytes longer than the plaintext: the ciphertext and its tag.
    static func seal(
        key: RawSpan, nonce: RawSpan, plaintext: RawSpan, authenticatedData: RawSpan,
        into output: inout MutableRawSpan, using cryptography: some Cryptography
    ) {
        var derivation = Derivation(key: key, nonce: nonce)
        cryptography.seal(
            key: derivation.subkey.span.octets, nonce: derivation.shortNonce.span.octets, plaintext: plaintext,
            authenticatedData: authenticatedData, into: &output)
        derivation.wipe()
    }

    /// Checks the tag at the end of `ciphertext` and decrypts what is before it.
    ///
    /// - Parameter output: exactly 16 bytes shorter than `ciphertext`.
    /// - Returns: False, with `output` zeroed, when the tag does not fit.
    static func open(
        key: RawSpan, nonce: RawSpan, ciphertext: RawSpan, authenticatedData: RawSpan,
        into output: inout MutableRawSpan, using cryptography: some Cryptography
    ) -> Bool {
        var derivation = Derivation(key: key, nonce: nonce)
        let isAuthentic = cryptography.open(
            key: derivation.subkey.span.octets, nonce: derivation.shortNonce.span.octets, ciphertext: ciphertext,
            authenticatedData: authenticatedData, into: &output)
        derivation.wipe()
        return isAuthentic
    }
}

/// The subkey and the nonce that ChaCha20-Poly1305 is used with.
private struct Derivation: ~Copyable {
    private(set) var subkey = InlineArray<32, UInt8>(repeating: 0)
    /// Four zero bytes and the last eight of the extended nonce.
    private(set) var shortNonce = InlineArray<12, UInt8>(repeating: 0)

    init(key: RawSpan, nonce: RawSpan) {
        precondition(nonce.byteCount == 24, "XChaCha20 takes a nonce of 24 bytes")
        var keySpan = subkey.mutableSpan
        var keyBytes = keySpan.mutableOctets
        HChaCha20.deriveKey(from: key, nonce: nonce.extracting(first: 16), into: &keyBytes)
        var nonceSpan = shortNonce.mutableSpan
        var nonceBytes = nonceSpan.mutableOctets
        nonceBytes.copy(nonce.extracting(last: 8), to: 4)
    }

    mutating func wipe() {
        var span = subkey.mutableSpan
        var bytes = span.mutableOctets
        WireGuard.wipe(&bytes)
    }
}
