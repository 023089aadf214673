/// Where keys, indices, cookies and jitter come from: cryptographically secure, but for tests that want the same schedule twice.
public typealias Entropy = any RandomNumberGenerator & Sendable

/// The primitives that WireGuard borrows from a library: X25519 (RFC 7748) and ChaCha20-Poly1305 (RFC 8439). An adapter
/// fills this with OpenSSL, another with CryptoKit. BLAKE2s, HMAC, the key derivation and HChaCha20 are this module's own.
///
/// An instance belongs to one thread and may keep scratch state (cipher contexts), but no key: when a call returns, no key
/// it was given may be left in the instance. The data path makes one call per train of messages.
///
/// The protocol is bound to classes so that code generic over it has a fixed memory layout and needs no specialization.
public protocol Cryptography: AnyObject {
    /// Writes the 32-byte X25519 public key of `privateKey` (32 bytes, clamped by the function itself) to `publicKey`.
    func derivePublicKey(of privateKey: RawSpan, into publicKey: inout MutableRawSpan)

    /// Writes the 32-byte X25519 shared secret to `secret`.
    ///
    /// - Returns: False, with `secret` zeroed, when the result is all zero (RFC 7748 section 6.1: a low-order public key).
    func deriveSharedSecret(privateKey: RawSpan, publicKey: RawSpan, into secret: inout MutableRawSpan) -> Bool

    /// Encrypts `plaintext` and authenticates it together with `authenticatedData`.
    ///
    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - nonce: 12 bytes.
    ///   - output: exactly 16 bytes longer than the plaintext: the ciphertext and its tag.
    func seal(
        key: RawSpan, nonce: RawSpan, plaintext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan)

    /// Checks the tag at the end of `ciphertext` and decrypts what is before it.
    ///
    /// - Parameter output: exactly 16 bytes shorter than `ciphertext`.
    /// - Returns: False, with `output` zeroed, when the tag does not fit.
    func open(
        key: RawSpan, nonce: RawSpan, ciphertext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan
    ) -> Bool

    /// Seals every data message of a train in place: each already holds its 16-byte header and its padded plaintext; the
    /// ciphertext replaces the plaintext and the tag fills the last 16 bytes. The nonce is four zero bytes and the eight
    /// bytes at offset 8 of the header.
    func sealMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan)

    /// Opens up to 64 data messages of a train in place: the plaintext replaces the ciphertext, 16 bytes after the message's
    /// start. All messages must be at least 32 bytes long.
    ///
    /// - Returns: Bit N is set when message N was authentic. The bytes of the others are unspecified.
    func openMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan) -> UInt64
}
