internal import CLibSSL

/// What all streams of one kind have in common: an SSL_CTX with the rules that hold for all of them.
@safe
struct ContextHandle: ~Copyable {
    let context: OpaquePointer

    /// TLS 1.2 or later, forward secrecy, and keys and signatures of 112 bits of strength or more; what comes close below 128 bits is
    /// looked for by ``CertificateCheck``.
    init(_ method: OpaquePointer?) throws(TLSError) {
        guard let context = unsafe SSL_CTX_new(method) else {
            ERR_clear_error()
            throw .unavailable
        }
        // The context was just made; the texts are literals that OpenSSL copies.
        let isSet =
            unsafe clibssl_set_min_version(context, TLS1_2_VERSION) == 1
            && SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
            && clibssl_set_groups(context, "X25519:P-256:P-384:P-521") == 1
        guard isSet else {
            unsafe SSL_CTX_free(context)
            ERR_clear_error()
            throw .unavailable
        }
        unsafe SSL_CTX_set_security_level(context, 2)
        unsafe clibssl_set_options(context)
        // Idle connections need no buffers.
        unsafe clibssl_set_mode(context, Int(SSL_MODE_RELEASE_BUFFERS))
        unsafe self.context = context
    }

    deinit {
        // The context is this value's own; streams that were made of it hold it by themselves.
        unsafe SSL_CTX_free(context)
    }
}
