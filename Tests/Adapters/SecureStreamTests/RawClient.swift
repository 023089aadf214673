import CLibSSL
import SecureStream

/// A client made of libssl itself, without the module under test: for what our own client never does.
@safe
struct RawClient: ~Copyable {
    private let context: OpaquePointer
    private let stream: OpaquePointer
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer

    /// - Parameters:
    ///   - groups: The groups for keys, of which it sends a key for the first one only.
    ///   - protocols: How many protocols it offers, of 200 bytes each.
    ///   - fragment: How long its records are at most.
    ///   - serverName: What it calls the server.
    init(
        version: Int32, groups: String = "X25519:P-256", protocols: Int = 0, fragment: Int = 16_384,
        serverName: String? = nil
    ) throws {
        // Every handle is checked before it is used; the stream takes the buffers over; texts and bytes are copied.
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw TLSError.unavailable }
        let list = (0..<protocols).flatMap { [UInt8(200)] + [UInt8](repeating: UInt8($0 + 1), count: 200) }
        guard unsafe clibssl_set_min_version(context, version) == 1,
            unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil) == 1,
            unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_SEND_FRAGMENT, fragment, nil) == 1,
            unsafe SSL_CTX_set_cipher_list(context, "ALL:COMPLEMENTOFALL:@SECLEVEL=0") == 1,
            unsafe clibssl_set_groups(context, groups) == 1,
            unsafe list.isEmpty || SSL_CTX_set_alpn_protos(context, list, UInt32(list.count)) == 0,
            let stream = unsafe SSL_new(context), let incoming = unsafe clibssl_new_memory(),
            let outgoing = unsafe clibssl_new_memory()
        else { throw TLSError.unavailable }
        unsafe SSL_set_bio(stream, incoming, outgoing)
        unsafe SSL_set_connect_state(stream)
        if let serverName { _ = unsafe clibssl_set_server_name(stream, serverName) }
        unsafe self.context = context
        unsafe self.stream = stream
        unsafe self.incoming = incoming
        unsafe self.outgoing = outgoing
    }

    deinit {
        unsafe SSL_free(stream)
        unsafe SSL_CTX_free(context)
    }

    /// Takes what the server sends; returns what it says to that.
    func answer(_ bytes: [UInt8] = []) -> [UInt8] {
        _ = unsafe BIO_write(incoming, bytes, Int32(bytes.count))
        _ = unsafe SSL_do_handshake(stream)
        var answer = [UInt8](repeating: 0, count: 40_000)
        let count = unsafe BIO_read(outgoing, &answer, Int32(answer.count))
        return Array(answer[..<max(0, Int(count))])
    }

    /// Encrypts data, once the handshake is done for it.
    func write(_ data: [UInt8]) -> [UInt8] {
        var count = 0
        _ = unsafe SSL_write_ex(stream, data, data.count, &count)
        return answer()
    }

    /// Begins another handshake; returns its ClientHello.
    func renegotiate() -> [UInt8] {
        _ = unsafe SSL_renegotiate(stream)
        return answer()
    }
}
