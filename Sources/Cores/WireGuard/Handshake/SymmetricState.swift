import ByteAccess

/// What a Noise handshake carries from token to token: the chaining key, the transcript hash and the key of the next
/// encryption (Noise, section 5.2; paper, sections 5.4.2 and 5.4.3). Everything is wiped with the value.
struct SymmetricState: ~Copyable {
    private var chainingKey: SecretMemory
    private var hash: SecretMemory
    private var key = SecretMemory(byteCount: 32)

    /// The state before the first token of a handshake with the responder whose static public key is `responder`.
    init(responder: PublicKey) {
        chainingKey = SecretMemory(copying: Self.construction.bytes)
        hash = SecretMemory(copying: Self.identifier.bytes)
        mixHash(responder.bytes)
    }

    /// A second value in the same state, with memory of its own: what may fail is tried on a copy.
    init(copying other: borrowing SymmetricState) {
        chainingKey = SecretMemory(copying: other.chainingKey.bytes)
        hash = SecretMemory(copying: other.hash.bytes)
        key = SecretMemory(copying: other.key.bytes)
    }

    /// H = HASH(H ‖ data).
    mutating func mixHash(_ data: RawSpan) {
        var state = hash.mutableBytes
        BLAKE2s.mix(data, into: &state)
    }

    /// C = KDF1(C, input).
    mutating func mixKey(_ input: RawSpan) {
        var state = chainingKey.mutableBytes
        KeyDerivation.derive(updating: &state, input: input)
    }

    /// (C, k) = KDF2(C, input).
    mutating func mixKeyForEncryption(_ input: RawSpan) {
        Self.derive(updating: &chainingKey, input: input, into: &key)
    }

    /// Mixes the X25519 of the two keys into the chaining key.
    ///
    /// - Returns: False when it is all zero: the public key is of low order, and the handshake must end.
    mutating func mixSharedSecret(
        _ privateKey: borrowing SecretMemory, _ publicKey: PublicKey, using cryptography: some Cryptography
    ) -> Bool {
        var secret = SecretMemory(byteCount: 32)
        let isUsable = secret.deriveShared(privateKey, publicKey, using: cryptography)
        mixKey(secret.bytes)
        return isUsable
    }

    /// As `mixSharedSecret`, and derives the key of the next encryption as well.
    mutating func mixSharedSecretForEncryption(
        _ privateKey: borrowing SecretMemory, _ publicKey: PublicKey, using cryptography: some Cryptography
    ) -> Bool {
        var secret = SecretMemory(byteCount: 32)
        let isUsable = secret.deriveShared(privateKey, publicKey, using: cryptography)
        mixKeyForEncryption(secret.bytes)
        return isUsable
    }

    /// (C, τ, k) = KDF3(C, key); H = HASH(H ‖ τ).
    mutating func mixPresharedKey(_ presharedKey: RawSpan) {
        var transcript = SecretMemory(byteCount: 32)
        Self.derive(updating: &chainingKey, input: presharedKey, into: &transcript, &key)
        mixHash(transcript.bytes)
    }

    /// Seals `plaintext` with the key of this step and mixes the result into the transcript.
    mutating func encryptAndHash(
        _ plaintext: RawSpan, into output: inout MutableRawSpan, using cryptography: some Cryptography
    ) {
        let nonce = InlineArray<12, UInt8>(repeating: 0)
        cryptography.seal(
            key: key.bytes, nonce: nonce.span.octets, plaintext: plaintext, authenticatedData: hash.bytes, into: &output
        )
        mixHash(output.bytes)
    }

    /// Opens `ciphertext` with the key of this step and mixes it into the transcript. False when it is not authentic.
    mutating func decryptAndHash(
        _ ciphertext: RawSpan, into output: inout MutableRawSpan, using cryptography: some Cryptography
    ) -> Bool {
        let nonce = InlineArray<12, UInt8>(repeating: 0)
        guard
            cryptography.open(
                key: key.bytes, nonce: nonce.span.octets, ciphertext: ciphertext, authenticatedData: hash.bytes,
                into: &output)
        else { return false }
        mixHash(ciphertext)
        return true
    }

    /// (T1, T2) = KDF2(C, ""): the keys that the initiator and the responder send with.
    func split(initiatorSends: inout SecretMemory, responderSends: inout SecretMemory) {
        var first = initiatorSends.mutableBytes
        var second = responderSends.mutableBytes
        KeyDerivation.derive(chainingKey: chainingKey.bytes, input: RawSpan(), into: &first, &second)
    }

    // Two spans into one value cannot be had at once, but two of its parts can be passed.

    private static func derive(updating chainingKey: inout SecretMemory, input: RawSpan, into key: inout SecretMemory) {
        var state = chainingKey.mutableBytes
        var output = key.mutableBytes
        KeyDerivation.derive(updating: &state, input: input, into: &output)
    }

    private static func derive(
        updating chainingKey: inout SecretMemory, input: RawSpan, into transcript: inout SecretMemory,
        _ key: inout SecretMemory
    ) {
        var state = chainingKey.mutableBytes
        var transcriptOutput = transcript.mutableBytes
        var output = key.mutableBytes
        KeyDerivation.derive(updating: &state, input: input, into: &transcriptOutput, &output)
    }

    /// C0 = HASH(construction).
    private static let construction = PublicHash("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s")
    /// H0 = HASH(C0 ‖ identifier).
    private static let identifier = PublicHash("WireGuard v1 zx2c4 Jason@zx2c4.com", after: construction.bytes)
}

extension SecretMemory {
    /// Replaces the 32 bytes with the X25519 of two keys. False, with zeros, when the public key is of low order.
    mutating func deriveShared(
        _ privateKey: borrowing SecretMemory, _ publicKey: PublicKey, using cryptography: some Cryptography
    ) -> Bool {
        var output = mutableBytes
        return cryptography.deriveSharedSecret(
            privateKey: privateKey.bytes, publicKey: publicKey.bytes, into: &output)
    }
}
