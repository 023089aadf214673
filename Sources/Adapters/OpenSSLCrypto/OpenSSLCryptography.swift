internal import COpenSSL
public import WireGuard

/// X25519 and ChaCha20-Poly1305 from OpenSSL 3. An instance belongs to one thread.
public final class OpenSSLCryptography: Cryptography {
    /// Makes the cipher contexts.
    public init() throws(OpenSSLError) {}

    public func derivePublicKey(of privateKey: RawSpan, into publicKey: inout MutableRawSpan) {}

    public func deriveSharedSecret(
        privateKey: RawSpan, publicKey: RawSpan, into secret: inout MutableRawSpan
    ) -> Bool { false }

    public func seal(
        key: RawSpan, nonce: RawSpan, plaintext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan
    ) {}

    public func open(
        key: RawSpan, nonce: RawSpan, ciphertext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan
    ) -> Bool { false }

    public func sealMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan) {}

    public func openMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan) -> UInt64 { 0 }
}
