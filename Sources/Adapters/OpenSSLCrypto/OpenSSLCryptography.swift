internal import ByteAccess
internal import COpenSSL
public import WireGuard

/// X25519 and ChaCha20-Poly1305 from OpenSSL 3 (libcrypto).
///
/// An instance belongs to one thread. It owns the contexts that it needs, so that sealing and opening allocate nothing, and
/// overwrites their keys before a call returns. X25519 allocates what it needs for each call, and
/// OpenSSL cleanses that when it frees it; the copies of the private key that it leaves on the stack are overwritten
/// here.
public final class OpenSSLCryptography: Cryptography {
    private let sealing: AEADContext
    private let opening: AEADContext
    private let messages: DataMessageCipher
    private let agreement: KeyAgreement

    /// Looks the algorithms up, which fails when a system's configuration of OpenSSL leaves one out, and makes the
    /// contexts.
    public init() throws(OpenSSLError) {
        sealing = try AEADContext(.seal)
        opening = try AEADContext(.open)
        messages = try DataMessageCipher()
        agreement = try KeyAgreement()
    }

    /// Writes the X25519 public key (32 bytes) of `privateKey` (32 bytes, clamped here) to `publicKey`.
    public func derivePublicKey(of privateKey: RawSpan, into publicKey: inout MutableRawSpan) {
        precondition(privateKey.byteCount == KeyAgreement.keyLength && publicKey.byteCount == KeyAgreement.keyLength)
        precondition(
            agreement.derivePublicKey(of: privateKey, into: &publicKey), "OpenSSL could not derive a public key")
    }

    /// Writes the X25519 shared secret (32 bytes) to `secret`.
    ///
    /// - Returns: False, with `secret` zeroed, when it is all zero (RFC 7748 section 6.1) or OpenSSL failed.
    public func deriveSharedSecret(
        privateKey: RawSpan, publicKey: RawSpan, into secret: inout MutableRawSpan
    ) -> Bool {
        precondition(privateKey.byteCount == KeyAgreement.keyLength && publicKey.byteCount == KeyAgreement.keyLength)
        precondition(secret.byteCount == KeyAgreement.keyLength)
        let isUsable = agreement.deriveSharedSecret(privateKey: privateKey, publicKey: publicKey, into: &secret)
        if !isUsable { wipe(&secret) }
        scrubStack()
        return isUsable
    }

    /// Encrypts and authenticates (RFC 8439): key 32 bytes, nonce 12 bytes, output 16 bytes longer than the plaintext.
    public func seal(
        key: RawSpan, nonce: RawSpan, plaintext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan
    ) {
        let count = plaintext.byteCount
        precondition(key.byteCount == AEADContext.keyLength && nonce.byteCount == AEADContext.nonceLength)
        precondition(output.byteCount == count + AEADContext.tagLength)
        sealing.setKey(key, nonce: nonce)
        sealing.authenticate(authenticatedData)
        // The output is as long as the text and the tag, and cannot overlap what is read.
        unsafe plaintext.withUnsafeBytes { plaintext in
            unsafe output.withUnsafeMutableBytes { output in
                guard let output = output.baseAddress else { return }
                let input = unsafe plaintext.baseAddress ?? UnsafeRawPointer(output)
                unsafe sealing.seal(input, count: count, into: output, tag: output + count)
            }
        }
        sealing.forgetKey()
    }

    /// Checks and decrypts (RFC 8439): key 32 bytes, nonce 12 bytes, output 16 bytes shorter than the ciphertext.
    ///
    /// - Returns: False, with `output` zeroed, when the tag does not fit.
    public func open(
        key: RawSpan, nonce: RawSpan, ciphertext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan
    ) -> Bool {
        let count = ciphertext.byteCount - AEADContext.tagLength
        precondition(key.byteCount == AEADContext.keyLength && nonce.byteCount == AEADContext.nonceLength)
        precondition(count >= 0 && output.byteCount == count)
        opening.setKey(key, nonce: nonce)
        opening.authenticate(authenticatedData)
        // The ciphertext is as long as the output and the tag, and cannot overlap what is written.
        let isAuthentic = unsafe ciphertext.withUnsafeBytes { ciphertext in
            unsafe output.withUnsafeMutableBytes { output in
                guard let input = ciphertext.baseAddress else { return false }
                return unsafe opening.open(input, count: count, into: output.baseAddress, tag: input + count)
            }
        }
        opening.forgetKey()
        if !isAuthentic { wipe(&output) }
        return isAuthentic
    }

    /// Seals the data messages of a train in place. Traps when one lies outside of the buffer or is shorter than 32
    /// bytes or longer than a datagram can be.
    public func sealMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan) {
        guard train.count > 0 else { return }
        train.checkBounds(of: buffer)
        messages.setKey(key)
        for index in 0..<train.count {
            let range = train.range(of: index)
            let counter = buffer.bytes.littleEndianUInt64(at: range.lowerBound + DataMessage.counterOffset)
            unsafe buffer.withUnsafeMutableBytes { buffer in
                guard let base = buffer.baseAddress else { return }
                // The bounds of all messages, and that each has room for a header and a tag, were checked above.
                let text = unsafe base + range.lowerBound + DataMessage.headerLength
                unsafe messages.seal(text, count: range.count - DataMessage.overhead, counter: counter)
            }
        }
        messages.forgetKey()
    }

    /// Opens up to 64 data messages of a train in place. Traps when one lies outside of the buffer or is shorter than
    /// 32 bytes or longer than a datagram can be.
    ///
    /// - Returns: Bit N is set when message N was authentic. The others are unchanged.
    public func openMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan) -> UInt64 {
        guard train.count > 0 else { return 0 }
        precondition(train.count <= UInt64.bitWidth, "a train of more messages than the result has bits")
        train.checkBounds(of: buffer)
        var authentic: UInt64 = 0
        messages.setKey(key)
        for index in 0..<train.count {
            let range = train.range(of: index)
            let counter = buffer.bytes.littleEndianUInt64(at: range.lowerBound + DataMessage.counterOffset)
            let isAuthentic = unsafe buffer.withUnsafeMutableBytes { buffer in
                guard let base = buffer.baseAddress else { return false }
                // The bounds of all messages, and that each has room for a header and a tag, were checked above.
                let text = unsafe base + range.lowerBound + DataMessage.headerLength
                return unsafe messages.open(text, count: range.count - DataMessage.overhead, counter: counter)
            }
            if isAuthentic { authentic |= 1 << UInt64(index) }
        }
        messages.forgetKey()
        return authentic
    }
}

/// What of a data message's layout is needed here: a header that ends in the counter, the text and the tag.
private enum DataMessage {
    static let counterOffset = 8
    static let headerLength = 16
    static let overhead = headerLength + AEADContext.tagLength
}

extension MessageTrain {
    /// Traps unless every message lies in the buffer and has room for a header and a tag.
    fileprivate func checkBounds(of buffer: borrowing MutableRawSpan) {
        precondition(offset >= 0 && lastLength >= DataMessage.overhead && stride >= lastLength, "a misshapen train")
        precondition(length <= buffer.byteCount - offset, "a train beyond the end of its buffer")
    }
}
