internal import ByteAccess
internal import CLibSSL

/// What TLS servers with one certificate have in common.
///
/// Clients get tickets to go on with (RFC 8446 §4.6.1, RFC 5077); nothing of their sessions is kept. Sharing is sound: nothing changes
/// once it is made but the keys of tickets, behind OpenSSL's lock.
@safe
public final class TLSServerContext: @unchecked Sendable {
    let handle: ContextHandle
    /// The protocols for ALPN as ``clibssl_select_protocol`` reads them; nil without any.
    private let protocols: UnsafeMutableBufferPointer<UInt8>?

    /// Reads certificate and key.
    ///
    /// - Parameters:
    ///   - certificateFile: The path of the server's certificate and those between it and an authority, in PEM form.
    ///   - keyFile: The path of its private key, in PEM form.
    ///   - protocols: What is spoken, the preferred one first. A client that offers others is refused (RFC 7301 §3.2).
    public convenience init(certificateFile: String, keyFile: String, protocols: [String] = []) throws(TLSError) {
        let list = try ProtocolList(protocols)
        let handle = unsafe try ContextHandle(TLS_server_method())
        // OpenSSL reads the paths up to their zeros and keeps nothing of them.
        let isRead =
            unsafe SSL_CTX_use_certificate_chain_file(handle.context, certificateFile) == 1
            && SSL_CTX_use_PrivateKey_file(handle.context, keyFile, SSL_FILETYPE_PEM) == 1
            && SSL_CTX_check_private_key(handle.context) == 1
        guard isRead else {
            ERR_clear_error()
            throw .unreadableCertificate
        }
        self.init(handle, list)
    }

    /// Takes over certificate and key that were read.
    ///
    /// - Parameters:
    ///   - certificates: The server's certificate and those between it and an authority, in PEM form.
    ///   - key: Its private key, in PEM form and without a passphrase. Nothing of these bytes is kept.
    ///   - protocols: What is spoken, the preferred one first. A client that offers others is refused (RFC 7301 §3.2).
    public convenience init(
        certificates: RawSpan, key: RawSpan, protocols: [String] = []
    ) throws(ServerCertificateError) {
        let list: ProtocolList
        let handle: ContextHandle
        do throws(TLSError) {
            list = try ProtocolList(protocols)
            handle = unsafe try ContextHandle(TLS_server_method())
        } catch { throw .unavailable }
        try handle.use(certificates: certificates)
        try handle.use(key: key)
        self.init(handle, list)
    }

    private init(_ handle: consuming ContextHandle, _ list: ProtocolList) {
        unsafe clibssl_keep_no_sessions(handle.context)
        if list.bytes.isEmpty {
            unsafe self.protocols = nil
        } else {
            // It lives as long as this object, which every stream of the context holds.
            let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: list.bytes.count + 2)
            let count = list.bytes.count
            _ = unsafe buffer.initialize(from: [UInt8(count & 0xFF), UInt8(count >> 8)] + list.bytes)
            unsafe clibssl_set_protocol_selection(handle.context, buffer.baseAddress)
            unsafe self.protocols = buffer
        }
        self.handle = handle
    }

    deinit {
        unsafe protocols?.deallocate()
    }

    /// Has tickets made with new keys from now on. What was sealed with the old ones cannot be opened any more, and clients that come
    /// with such a ticket shake hands in full.
    public func renewTicketKeys() {
        // Without randomness the old keys go on.
        if unsafe clibssl_renew_ticket_keys(handle.context) != 1 { ERR_clear_error() }
    }

    /// ``CertificateProblem/expired`` or ``CertificateProblem/notYetValid`` when the server's certificate is that now, by the system's
    /// clock; else nil.
    public var validityProblem: CertificateProblem? {
        // The certificate belongs to the context, and its times to the certificate.
        guard let certificate = unsafe SSL_CTX_get0_certificate(handle.context) else { return .missing }
        // The comparison is 0 where a time has no right form, and negative where it is past.
        if unsafe X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0 { return .expired }
        return unsafe X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0 ? nil : .notYetValid
    }
}
