internal import ByteAccess
internal import COpenSSL

/// ChaCha20-Poly1305 (RFC 8439 section 2.8) for messages without authenticated data, put together of OpenSSL's ChaCha20 and
/// Poly1305.
///
/// OpenSSL's own AEAD makes the one-time key of Poly1305 by a call of its own, a last block that is not whole by another, and
/// looks parameters up by their names, for every message: 545 ns for 96 bytes and 1,015 for 1,424. Here one call makes the
/// whole key stream, in a buffer where the text stands behind a block of zeros (which becomes the one-time key) and ends with
/// its block.
///
///       64 bytes      text      to the end of its last block
///     ┌──────────┬────────────┬─────┐
///     │  zeros   │ text       │     │  ── ChaCha20, block counter 0 ──▶  one-time key │ ciphertext │ (unused)
///     └──────────┴────────────┴─────┘
@safe
struct DataMessageCipher: ~Copyable {
    /// The longest text in bytes.
    static let maximumLength = 65_536
    /// The length of a block of ChaCha20 in bytes.
    private static let blockLength = 64
    private static let oneTimeKeyLength = 32

    private let cipher: OpaquePointer
    private let authenticator: OpaquePointer
    /// A block, the longest text, and a block: what no message reaches is never touched and takes no memory.
    private let scratch: UnsafeMutableRawPointer

    /// Allocates contexts without a key, that is, with one of zeros.
    init() throws(OpenSSLError) {
        guard let algorithm = unsafe FetchedStreamAlgorithms.all.cipher,
            let authentication = unsafe FetchedStreamAlgorithms.all.authenticator
        else { throw .algorithmUnavailable(.chaCha20Poly1305) }
        guard let cipher = unsafe EVP_CIPHER_CTX_new() else { throw .outOfMemory }
        guard let authenticator = unsafe EVP_MAC_CTX_new(authentication) else {
            unsafe EVP_CIPHER_CTX_free(cipher)
            throw .outOfMemory
        }
        // Both handles were just checked. The key and the nonce come later.
        guard unsafe EVP_EncryptInit_ex2(cipher, algorithm, nil, nil, nil) == 1 else {
            unsafe EVP_MAC_CTX_free(authenticator)
            unsafe EVP_CIPHER_CTX_free(cipher)
            ERR_clear_error()
            throw .algorithmUnavailable(.chaCha20Poly1305)
        }
        unsafe self.cipher = cipher
        unsafe self.authenticator = authenticator
        unsafe scratch = .allocate(byteCount: Self.maximumLength + 2 * Self.blockLength, alignment: Self.blockLength)
        forgetKey()
    }

    deinit {
        // All three are this value's own and go away here.
        unsafe EVP_MAC_CTX_free(authenticator)
        unsafe EVP_CIPHER_CTX_free(cipher)
        unsafe scratch.deallocate()
    }

    /// Takes a key of 32 bytes for the messages that follow.
    func setKey(_ key: RawSpan) {
        precondition(key.byteCount == AEADContext.keyLength)
        unsafe key.withUnsafeBytes { key in
            unsafe begin(key: key.baseAddress?.assumingMemoryBound(to: UInt8.self), counter: 0)
        }
    }

    /// Overwrites the key with zeros, and the one-time key of the last message.
    func forgetKey() {
        let zeros = InlineArray<32, UInt8>(repeating: 0)
        setKey(zeros.span.octets)
        // The block is the scratch memory's own.
        unsafe scratch.initializeMemory(as: UInt8.self, repeating: 0, count: Self.blockLength)
        beginAuthentication()
    }

    /// Encrypts the `count` bytes at `text` in place, and writes their tag of 16 bytes behind them. `counter` is the end of the
    /// nonce, whose other bytes are zero.
    @inline(__always)
    func seal(_ text: UnsafeMutableRawPointer, count: Int, counter: UInt64) {
        unsafe applyKeyStream(to: text, count: count, counter: counter)
        // The caller answers for `count` bytes and a tag; the scratch memory holds as much behind its first block.
        unsafe text.copyMemory(from: scratch + Self.blockLength, byteCount: count)
        unsafe authenticate(text, count: count, into: (text + count).assumingMemoryBound(to: UInt8.self))
    }

    /// Decrypts the `count` bytes at `text` in place when the tag of 16 bytes behind them fits.
    ///
    /// - Returns: False when it does not. Nothing is changed then.
    @inline(__always)
    func open(_ text: UnsafeMutableRawPointer, count: Int, counter: UInt64) -> Bool {
        unsafe applyKeyStream(to: text, count: count, counter: counter)
        var storage = InlineArray<16, UInt8>(repeating: 0)
        var expected = storage.mutableSpan
        let isAuthentic = unsafe expected.withUnsafeMutableBufferPointer { expected in
            guard let tag = expected.baseAddress else { return false }
            unsafe authenticate(text, count: count, into: tag)
            return unsafe CRYPTO_memcmp(tag, text + count, AEADContext.tagLength) == 0
        }
        if isAuthentic {
            // The caller answers for `count` bytes; the scratch memory holds as much behind its first block.
            unsafe text.copyMemory(from: scratch + Self.blockLength, byteCount: count)
        }
        return isAuthentic
    }

    /// Leaves a message's one-time key and its text, encrypted or decrypted, in the scratch memory.
    @inline(__always)
    private func applyKeyStream(to text: UnsafeRawPointer, count: Int, counter: UInt64) {
        precondition(count >= 0 && count <= Self.maximumLength, "a message that is too long")
        let blocks = (count + Self.blockLength - 1) / Self.blockLength + 1
        let bytes = unsafe scratch.assumingMemoryBound(to: UInt8.self)
        var length: Int32 = 0
        unsafe scratch.initializeMemory(as: UInt8.self, repeating: 0, count: Self.blockLength)
        unsafe (scratch + Self.blockLength).copyMemory(from: text, byteCount: count)
        unsafe begin(key: nil, counter: counter)
        // In bounds: the whole blocks of the longest text and one before them. A cipher of streams may work in place.
        let result = unsafe EVP_EncryptUpdate(cipher, bytes, &length, bytes, Int32(blocks * Self.blockLength))
        precondition(result == 1, "OpenSSL could not encrypt")
    }

    /// Writes the tag of a ciphertext, whose one-time key is in the scratch memory (RFC 8439 section 2.8: the text, zeros to a
    /// multiple of 16, the lengths of the authenticated data and of the text).
    @inline(__always)
    private func authenticate(_ text: UnsafeRawPointer, count: Int, into tag: UnsafeMutablePointer<UInt8>) {
        let padding = -count & 15
        var storage = InlineArray<32, UInt8>(repeating: 0)
        var span = storage.mutableSpan
        var end = span.mutableOctets
        end.storeLittleEndian(UInt64(count), at: padding + 8)
        beginAuthentication()
        var length = 0
        // The text is as long as the caller says, the end has two multiples of 16, and the tag has the 16 bytes asked for.
        let isWritten = unsafe end.withUnsafeMutableBytes { end in
            unsafe EVP_MAC_update(authenticator, text.assumingMemoryBound(to: UInt8.self), count) == 1
                && EVP_MAC_update(authenticator, end.baseAddress?.assumingMemoryBound(to: UInt8.self), padding + 16)
                    == 1
                && EVP_MAC_final(authenticator, tag, &length, AEADContext.tagLength) == 1
        }
        precondition(isWritten, "OpenSSL could not authenticate a message")
    }

    /// Begins a message's authentication with the one-time key in the scratch memory.
    @inline(__always)
    private func beginAuthentication() {
        let key = unsafe scratch.assumingMemoryBound(to: UInt8.self)
        precondition(
            unsafe EVP_MAC_init(authenticator, key, Self.oneTimeKeyLength, nil) == 1, "OpenSSL refused a key")
    }

    /// Begins a key stream at its first block, with another key unless that is nil. OpenSSL's nonce is the number of that block in
    /// four bytes, then RFC 8439's.
    @inline(__always)
    private func begin(key: UnsafePointer<UInt8>?, counter: UInt64) {
        var storage = InlineArray<16, UInt8>(repeating: 0)
        var span = storage.mutableSpan
        var nonce = span.mutableOctets
        nonce.storeLittleEndian(counter, at: 8)
        let result = unsafe nonce.withUnsafeMutableBytes { nonce in
            unsafe EVP_EncryptInit_ex2(
                cipher, nil, key, nonce.baseAddress?.assumingMemoryBound(to: UInt8.self), nil)
        }
        precondition(result == 1, "OpenSSL refused a key or nonce")
    }
}

/// The algorithms as OpenSSL's providers have them, looked up once per process: a look-up costs more than a message.
@safe
private struct FetchedStreamAlgorithms: ~Copyable, @unchecked Sendable {
    /// Nil when no provider has it. OpenSSL's algorithms do not change, so that threads may share them.
    let cipher: OpaquePointer?
    let authenticator: OpaquePointer?

    static let all = FetchedStreamAlgorithms()

    private init() {
        // New references, which are never given up: the value lives as long as the process.
        unsafe cipher = EVP_CIPHER_fetch(nil, "ChaCha20", nil)
        unsafe authenticator = EVP_MAC_fetch(nil, "POLY1305", nil)
        if unsafe cipher == nil || authenticator == nil { ERR_clear_error() }
    }
}
