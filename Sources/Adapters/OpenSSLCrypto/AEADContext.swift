internal import ByteAccess
internal import COpenSSL

/// Which way a context works.
enum Direction {
    case seal
    case open
}

/// An OpenSSL context for ChaCha20-Poly1305 in one direction. It is made once and used for every message, since making
/// one allocates.
///
///     ┌────────────────────────────── forgetKey ──────────────────────────────┐
///     ▼                                                                       │
///     no key ── setKey ──▶ at a message ── authenticate, seal or open ──▶ message done
@safe
struct AEADContext: ~Copyable {
    /// The length of a key in bytes.
    static let keyLength = 32
    /// The length of a nonce in bytes.
    static let nonceLength = 12
    /// The length of an authentication tag in bytes.
    static let tagLength = 16

    private let context: OpaquePointer
    private let direction: Direction

    /// Allocates a context without a key, that is, with one of zeros.
    init(_ direction: Direction) throws(OpenSSLError) {
        guard let cipher = unsafe FetchedCipher.chaCha20Poly1305.cipher else {
            throw .algorithmUnavailable(.chaCha20Poly1305)
        }
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .outOfMemory }
        // Both handles were just checked. The key and the nonce come later.
        guard unsafe EVP_CipherInit_ex2(context, cipher, nil, nil, direction == .seal ? 1 : 0, nil) == 1 else {
            unsafe EVP_CIPHER_CTX_free(context)
            ERR_clear_error()
            throw .algorithmUnavailable(.chaCha20Poly1305)
        }
        unsafe self.context = context
        self.direction = direction
        forgetKey()
    }

    deinit {
        // The context is this value's own and goes away here.
        unsafe EVP_CIPHER_CTX_free(context)
    }

    /// Begins a message with a new key (32 bytes) and a nonce (12 bytes).
    func setKey(_ key: RawSpan, nonce: RawSpan) {
        precondition(key.byteCount == Self.keyLength && nonce.byteCount == Self.nonceLength)
        unsafe key.withUnsafeBytes { key in
            unsafe begin(key: key.baseAddress?.assumingMemoryBound(to: UInt8.self), nonce: nonce)
        }
    }

    /// Overwrites the key with zeros.
    func forgetKey() {
        let zeros = InlineArray<32, UInt8>(repeating: 0)
        setKey(zeros.span.octets, nonce: zeros.span.octets.extracting(first: Self.nonceLength))
    }

    /// Authenticates data that is not encrypted, before the text of the message.
    func authenticate(_ data: RawSpan) {
        if data.isEmpty { return }
        unsafe data.withUnsafeBytes { data in
            var length: Int32 = 0
            let bytes = unsafe data.baseAddress?.assumingMemoryBound(to: UInt8.self)
            // Without an output, the input counts as authenticated data. The length is the buffer's own.
            let result =
                switch direction {
                case .seal: unsafe EVP_EncryptUpdate(context, nil, &length, bytes, Int32(data.count))
                case .open: unsafe EVP_DecryptUpdate(context, nil, &length, bytes, Int32(data.count))
                }
            precondition(result == 1, "OpenSSL could not authenticate data")
        }
    }

    /// Encrypts `count` bytes from `input` to `output`, which may be the same memory, and writes their 16-byte tag.
    func seal(_ input: UnsafeRawPointer, count: Int, into output: UnsafeMutableRawPointer, tag: UnsafeMutableRawPointer)
    {
        let input = unsafe input.assumingMemoryBound(to: UInt8.self)
        let output = unsafe output.assumingMemoryBound(to: UInt8.self)
        var length: Int32 = 0
        // The cipher writes as much as it reads, which the caller says is `count`; its last step writes nothing.
        let isSealed =
            unsafe (count == 0 || EVP_EncryptUpdate(context, output, &length, input, Int32(count)) == 1)
            && EVP_EncryptFinal_ex(context, output, &length) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), tag) == 1
        precondition(isSealed, "OpenSSL could not seal a message")
    }

    /// Decrypts `count` bytes from `input` to `output`, which may be the same memory, and compares their tag with the
    /// 16 bytes at `tag`.
    ///
    /// - Parameter output: may be missing when `count` is zero.
    /// - Returns: False when the tag does not fit. The output may not be used then.
    func open(_ input: UnsafeRawPointer, count: Int, into output: UnsafeMutableRawPointer?, tag: UnsafeRawPointer)
        -> Bool
    {
        let input = unsafe input.assumingMemoryBound(to: UInt8.self)
        let output = unsafe output?.assumingMemoryBound(to: UInt8.self)
        var length: Int32 = 0
        var nothing: UInt8 = 0
        // The cipher writes as much as it reads, which the caller says is `count`; its last step writes nothing. It
        // copies the tag, though the call has no const in its type.
        let isOpened =
            unsafe EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), UnsafeMutableRawPointer(mutating: tag)) == 1
            && (count == 0 || EVP_DecryptUpdate(context, output, &length, input, Int32(count)) == 1)
            && EVP_DecryptFinal_ex(context, &nothing, &length) == 1
        if !isOpened { ERR_clear_error() }
        return isOpened
    }

    private func begin(key: UnsafePointer<UInt8>?, nonce: RawSpan) {
        let result = unsafe nonce.withUnsafeBytes { nonce in
            let nonce = unsafe nonce.baseAddress?.assumingMemoryBound(to: UInt8.self)
            // The caller checked both lengths.
            return switch direction {
            case .seal: unsafe EVP_EncryptInit_ex2(context, nil, key, nonce, nil)
            case .open: unsafe EVP_DecryptInit_ex2(context, nil, key, nonce, nil)
            }
        }
        precondition(result == 1, "OpenSSL refused a key or nonce")
    }
}

/// An algorithm as OpenSSL's providers have it, looked up once per process: a look-up costs more than a message.
@safe
private struct FetchedCipher: ~Copyable, @unchecked Sendable {
    /// The algorithm, or nil when no provider has it. OpenSSL's algorithms do not change, so that threads may share it.
    let cipher: OpaquePointer?

    static let chaCha20Poly1305 = FetchedCipher()

    private init() {
        // A new reference, which is never given up: the value lives as long as the process.
        unsafe cipher = EVP_CIPHER_fetch(nil, "ChaCha20-Poly1305", nil)
        if unsafe cipher == nil { ERR_clear_error() }
    }
}
