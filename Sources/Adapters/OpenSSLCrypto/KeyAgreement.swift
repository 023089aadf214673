internal import ByteAccess
internal import COpenSSL

/// X25519 (RFC 7748) with raw keys. OpenSSL clamps private keys, and cleanses its copies of them when it frees them.
@safe
struct KeyAgreement: ~Copyable {
    /// The length of a private key, a public key and a shared secret in bytes.
    static let keyLength = 32

    /// Makes OpenSSL's keys out of raw ones. It is made once, since looking the algorithm up takes long, and keeps no
    /// key.
    private let importer: OpaquePointer

    init() throws(OpenSSLError) {
        guard let importer = unsafe EVP_PKEY_CTX_new_from_name(nil, "X25519", nil) else {
            ERR_clear_error()
            throw .algorithmUnavailable(.x25519)
        }
        // The handle was just checked.
        guard unsafe EVP_PKEY_fromdata_init(importer) == 1 else {
            unsafe EVP_PKEY_CTX_free(importer)
            ERR_clear_error()
            throw .algorithmUnavailable(.x25519)
        }
        unsafe self.importer = importer
    }

    deinit {
        // The context is this value's own and goes away here.
        unsafe EVP_PKEY_CTX_free(importer)
    }

    /// Writes the public key of a private key, 32 bytes each.
    ///
    /// - Returns: False when OpenSSL failed, which only a lack of memory explains.
    func derivePublicKey(of privateKey: RawSpan, into publicKey: inout MutableRawSpan) -> Bool {
        guard let key = importKey(privateKey: privateKey, publicKey: RawSpan()) else { return false }
        return key.writePublicKey(to: &publicKey)
    }

    /// Writes the shared secret of a private key and another's public key, 32 bytes each.
    ///
    /// - Returns: False when it is all zero or OpenSSL failed. The bytes of the secret are unspecified then.
    func deriveSharedSecret(privateKey: RawSpan, publicKey: RawSpan, into secret: inout MutableRawSpan) -> Bool {
        // Without a public half OpenSSL would compute one, which takes as long as the agreement, and that does not use
        // it.
        let unusedPublicKey = InlineArray<32, UInt8>(repeating: 0)
        guard let own = importKey(privateKey: privateKey, publicKey: unusedPublicKey.span.octets),
            let other = importKey(privateKey: RawSpan(), publicKey: publicKey),
            let derivation = Derivation(of: own)
        else { return false }
        return derivation.derive(with: other, into: &secret)
    }

    /// Copies a raw private key, a raw public key or both. An empty span stands for none; the public key that belongs
    /// to a private one is computed then.
    private func importKey(privateKey: RawSpan, publicKey: RawSpan) -> Key? {
        let selection = privateKey.isEmpty ? copenssl_select_public_key() : copenssl_select_key_pair()
        var key: OpaquePointer?
        // The parameters point to the keys only within these closures, and OpenSSL copies both.
        unsafe privateKey.withUnsafeBytes { privateKey in
            unsafe publicKey.withUnsafeBytes { publicKey in
                var parameters = unsafe InlineArray<3, OSSL_PARAM>(repeating: OSSL_PARAM_construct_end())
                var count = 0
                if privateKey.count > 0 {
                    unsafe parameters[count] = unsafe copenssl_private_key(privateKey.baseAddress, privateKey.count)
                    count += 1
                }
                if publicKey.count > 0 {
                    unsafe parameters[count] = unsafe copenssl_public_key(publicKey.baseAddress, publicKey.count)
                }
                var span = unsafe parameters.mutableSpan
                unsafe span.withUnsafeMutableBufferPointer { parameters in
                    _ = unsafe EVP_PKEY_fromdata(importer, &key, selection, parameters.baseAddress)
                }
            }
        }
        guard let key = unsafe key else {
            ERR_clear_error()
            return nil
        }
        return unsafe Key(owning: key)
    }
}

/// An OpenSSL key.
@safe
private struct Key: ~Copyable {
    fileprivate let handle: OpaquePointer

    /// Takes over a reference to a key.
    init(owning handle: OpaquePointer) {
        unsafe self.handle = handle
    }

    deinit {
        // The reference is this value's own and goes away here.
        unsafe EVP_PKEY_free(handle)
    }

    /// Writes the raw public half to `output`, which is as long as it.
    func writePublicKey(to output: inout MutableRawSpan) -> Bool {
        unsafe output.withUnsafeMutableBytes { output in
            var length = output.count
            let bytes = unsafe output.baseAddress?.assumingMemoryBound(to: UInt8.self)
            // OpenSSL writes no more than `length`.
            return unsafe EVP_PKEY_get_raw_public_key(handle, bytes, &length) == 1 && length == output.count
        }
    }
}

/// An OpenSSL context that derives a secret from a key.
@safe
private struct Derivation: ~Copyable {
    private let context: OpaquePointer

    /// Makes a context for a private key, of which it takes a reference of its own.
    init?(of key: borrowing Key) {
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.handle, nil) else {
            ERR_clear_error()
            return nil
        }
        unsafe self.context = context
    }

    deinit {
        // The context is this value's own and goes away here.
        unsafe EVP_PKEY_CTX_free(context)
    }

    /// Writes the secret shared with the owner of the public key `other` to `secret`, which is as long as it.
    func derive(with other: borrowing Key, into secret: inout MutableRawSpan) -> Bool {
        // OpenSSL takes a reference of its own to the key. It need not validate it: every string of 32 bytes is one.
        guard unsafe EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer_ex(context, other.handle, 0) == 1
        else {
            ERR_clear_error()
            return false
        }
        let isDerived = unsafe secret.withUnsafeMutableBytes { secret in
            var length = secret.count
            let bytes = unsafe secret.baseAddress?.assumingMemoryBound(to: UInt8.self)
            // OpenSSL writes no more than `length`, and refuses a secret of zeros.
            return unsafe EVP_PKEY_derive(context, bytes, &length) == 1 && length == secret.count
        }
        if !isDerived { ERR_clear_error() }
        return isDerived
    }
}
