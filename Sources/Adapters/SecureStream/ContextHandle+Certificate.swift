internal import CLibSSL

extension ContextHandle {
    /// Takes a server's certificate, and behind it those that lead to an authority, in PEM form.
    func use(certificates: RawSpan) throws(ServerCertificateError) {
        let input = try MemoryReader(certificates)
        guard let leaf = unsafe clibssl_next_certificate(input.memory) else {
            throw Self.isAtEnd() ? .noCertificate : .brokenCertificate
        }
        // The context takes references of its own.
        defer { unsafe X509_free(leaf) }
        guard unsafe SSL_CTX_use_certificate(context, leaf) == 1 else {
            throw .refusedCertificate(reason: Self.reason())
        }
        while let other = unsafe clibssl_next_certificate(input.memory) {
            defer { unsafe X509_free(other) }
            guard unsafe clibssl_add_chain_certificate(context, other) == 1 else {
                throw .refusedCertificate(reason: Self.reason())
            }
        }
        guard Self.isAtEnd() else { throw .brokenCertificate }
    }

    /// Takes the private key of the certificate that was taken before, in PEM form.
    func use(key: RawSpan) throws(ServerCertificateError) {
        let input = try MemoryReader(key)
        guard let key = unsafe clibssl_next_key(input.memory) else {
            ERR_clear_error()
            throw .noKey
        }
        // The context takes a reference of its own.
        defer { unsafe EVP_PKEY_free(key) }
        guard unsafe SSL_CTX_use_PrivateKey(context, key) == 1, unsafe SSL_CTX_check_private_key(context) == 1 else {
            ERR_clear_error()
            throw .otherKey
        }
    }

    /// True when reading ended because there was nothing more, and not because something was wrong.
    private static func isAtEnd() -> Bool {
        defer { ERR_clear_error() }
        return clibssl_is_at_end() != 0
    }

    /// What OpenSSL says about its last error.
    private static func reason() -> String {
        defer { ERR_clear_error() }
        // The text is a constant of OpenSSL's.
        guard let text = unsafe ERR_reason_error_string(ERR_peek_last_error()) else { return "no reason is given" }
        return unsafe String(cString: text)
    }
}

/// Bytes that OpenSSL reads where they are, without a copy: the caller has them for longer than this value.
@safe
private struct MemoryReader: ~Copyable {
    let memory: OpaquePointer

    init(_ bytes: RawSpan) throws(ServerCertificateError) {
        ERR_clear_error()
        guard let count = Int32(exactly: bytes.byteCount) else { throw .unavailable }
        let memory = unsafe bytes.withUnsafeBytes { bytes in
            // OpenSSL keeps address and length. No bytes at all may have no address, and it wants one.
            unsafe BIO_new_mem_buf(bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1), count)
        }
        guard let memory = unsafe memory else { throw .unavailable }
        unsafe self.memory = memory
    }

    deinit {
        // It is this value's own; the bytes are not.
        unsafe BIO_free(memory)
    }
}
