internal import ByteAccess
internal import CLibSSL

/// What TLS servers with one certificate have in common.
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
    public init(certificateFile: String, keyFile: String, protocols: [String] = []) throws(TLSError) {
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
}

/// The server's side of a TLS stream, between two buffers in memory. The caller moves ciphertext between them and the network.
public struct TLSServer: ~Copyable {
    private let context: TLSServerContext
    private var handle: StreamHandle

    /// Waits for a ClientHello.
    public init(_ context: TLSServerContext) throws(TLSError) {
        let handle = try StreamHandle(context.handle)
        unsafe SSL_set_accept_state(handle.stream)
        self.handle = handle
        self.context = context
    }

    /// How far the stream is.
    public var state: TLSState { handle.state }

    /// Takes ciphertext from the network and goes on with the handshake.
    public mutating func receive(_ ciphertext: RawSpan) throws(TLSError) {
        try handle.receive(ciphertext)
        if handle.state == .handshaking, try handle.shakeHands() { handle.establish() }
    }

    /// How many bytes of ciphertext there are for the network.
    public var outgoingCount: Int { handle.outgoingCount }

    /// Moves ciphertext for the network to the start of `output`; returns how many bytes, 0 when there are none.
    public mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int { handle.nextOutgoing(into: &output) }

    /// Encrypts all of `plaintext`. Throws ``TLSError/notEstablished`` before the handshake is done.
    public mutating func write(_ plaintext: RawSpan) throws(TLSError) { try handle.write(plaintext) }

    /// Decrypts into the start of `output`.
    public mutating func read(into output: inout MutableRawSpan) throws(TLSError) -> TLSReadResult {
        try handle.read(into: &output)
    }

    /// Says to the client that nothing more comes.
    public mutating func close() { handle.close() }

    /// The protocol that ALPN agreed on; nil when there is none.
    public var negotiatedProtocol: String? { handle.negotiatedProtocol }

    /// The name that the client asked for; nil when it named none.
    public var requestedName: String? {
        // The name belongs to the stream and ends in a zero.
        guard let name = unsafe SSL_get_servername(handle.stream, TLSEXT_NAMETYPE_host_name) else { return nil }
        return unsafe String(cString: name)
    }
}
