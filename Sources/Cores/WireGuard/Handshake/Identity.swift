import ByteAccess

/// A device's own static key pair.
struct Identity: ~Copyable {
    /// The 32-byte private key, clamped (RFC 7748, section 5).
    let privateKey: SecretMemory
    /// The public key that peers know the device by.
    let publicKey: PublicKey

    /// The identity of the private key in `bytes`, which must be 32 long; its bits are clamped.
    init(privateKey bytes: RawSpan, using cryptography: some Cryptography) {
        precondition(bytes.byteCount == PublicKey.byteCount, "a private key has 32 bytes")
        var key = SecretMemory(copying: bytes)
        Self.clamp(&key)
        publicKey = PublicKey(ofPrivateKey: key, using: cryptography)
        privateKey = key
    }

    private static func clamp(_ key: inout SecretMemory) {
        var bytes = key.mutableBytes
        bytes.store(bytes.bytes.uint8(at: 0) & 0xf8, at: 0)
        bytes.store(bytes.bytes.uint8(at: 31) & 0x7f | 0x40, at: 31)
    }
}

/// A key pair made for one handshake.
struct EphemeralKey: ~Copyable {
    let privateKey: SecretMemory
    let publicKey: PublicKey

    /// A fresh key pair.
    init(entropy: inout Entropy, using cryptography: some Cryptography) {
        var key = SecretMemory(byteCount: PublicKey.byteCount)
        key.fill(from: &entropy)
        publicKey = PublicKey(ofPrivateKey: key, using: cryptography)
        privateKey = key
    }
}

extension PublicKey {
    /// The public key that belongs to a private one.
    fileprivate init(ofPrivateKey privateKey: borrowing SecretMemory, using cryptography: some Cryptography) {
        var storage = InlineArray<32, UInt8>(repeating: 0)
        var span = storage.mutableSpan
        var output = span.mutableOctets
        cryptography.derivePublicKey(of: privateKey.bytes, into: &output)
        self.init(output.bytes)
    }
}

extension SecretMemory {
    /// Fills the memory, a multiple of eight bytes, with random bytes.
    mutating func fill(from entropy: inout Entropy) {
        var bytes = mutableBytes
        for offset in stride(from: 0, to: bytes.byteCount, by: 8) {
            bytes.storeLittleEndian(entropy.next() as UInt64, at: offset)
        }
    }
}
