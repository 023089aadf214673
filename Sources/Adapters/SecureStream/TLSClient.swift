internal import ByteAccess
internal import CLibSSL
internal import IPPacket

/// What TLS clients of one upstream have in common: whom they trust, and the protocols that they offer. Read-only once made, and so
/// shared by threads.
public final class TLSClientContext: @unchecked Sendable {
    let handle: ContextHandle
    let policy: TrustPolicy
    private let protocols: ProtocolList

    /// Reads the authorities. Without any that can be read, there is no context, and so no connection.
    public init(_ policy: TrustPolicy, protocols: [String] = []) throws(TLSError) {
        let protocols = try ProtocolList(protocols)
        let handle = unsafe try ContextHandle(TLS_client_method())
        // There are few connections to servers, and each of them is busy or closed soon: they keep their buffers between records.
        unsafe clibssl_clear_mode(handle.context, Int(SSL_MODE_RELEASE_BUFFERS))
        switch policy.rule {
        case .authorities(.system, _):
            guard unsafe SSL_CTX_set_default_verify_paths(handle.context) == 1 else {
                ERR_clear_error()
                throw .unreadableAuthorities
            }
        case .authorities(.file(let path), _):
            // OpenSSL reads the path up to its zero and keeps nothing of it.
            guard unsafe SSL_CTX_load_verify_locations(handle.context, path, nil) == 1 else {
                ERR_clear_error()
                throw .unreadableAuthorities
            }
        case .pinsOnly: break
        }
        // With pins alone, OpenSSL does not judge: the check after the handshake does.
        if case .authorities = policy.rule { unsafe SSL_CTX_set_verify(handle.context, SSL_VERIFY_PEER, nil) }
        if !protocols.bytes.isEmpty {
            // OpenSSL copies the list. The call returns 0 when it was successful.
            guard unsafe SSL_CTX_set_alpn_protos(handle.context, protocols.bytes, UInt32(protocols.bytes.count)) == 0
            else {
                throw .unavailable
            }
        }
        self.handle = handle
        self.policy = policy
        self.protocols = protocols
    }
}

/// The client's side of a TLS stream, between two buffers in memory. The caller moves ciphertext between them and the network.
///
/// Nothing can be written until the server has proved who it is: until then, only the handshake goes out.
public struct TLSClient: ~Copyable {
    private let context: TLSClientContext
    private let identity: ServerIdentity
    private var handle: StreamHandle

    /// Begins a handshake: ``nextOutgoing(into:)`` has the ClientHello.
    ///
    /// - Parameter session: A session that an earlier connection to the same server left, to go on with it. It is used up: a ticket
    ///   that is sent twice shows that both connections are of the same client (RFC 8446 §C.4).
    public init(
        _ context: TLSClientContext, identity: ServerIdentity, resuming session: consuming TLSSession? = nil
    ) throws(TLSError) {
        let hostName = try identity.hostName
        var handle = try StreamHandle(context.handle)
        try Self.name(identity, hostName, handle)
        unsafe SSL_set_connect_state(handle.stream)
        if let session {
            guard session.policy == context.policy, session.identity == identity else { throw .foreignSession }
            // The stream takes a reference of its own.
            guard unsafe SSL_set_session(handle.stream, session.session) == 1 else {
                ERR_clear_error()
                throw .foreignSession
            }
        }
        _ = try handle.shakeHands()
        self.handle = handle
        self.context = context
        self.identity = identity
    }

    private static func name(
        _ identity: ServerIdentity, _ hostName: String?, _ handle: borrowing StreamHandle
    ) throws(TLSError) {
        // The parameters belong to the stream; names and addresses are copied.
        let parameters = unsafe SSL_get0_param(handle.stream)
        switch identity {
        case .name:
            guard let hostName else { throw .invalidServerName }
            // The subject's own name is no name of the server (RFC 9525 §6.2).
            let flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
            unsafe X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(flags))
            guard unsafe X509_VERIFY_PARAM_set1_host(parameters, hostName, 0) == 1,
                unsafe clibssl_set_server_name(handle.stream, hostName) == 1
            else {
                ERR_clear_error()
                throw .invalidServerName
            }
        case .address(let address):
            var octets = InlineArray<16, UInt8>(repeating: 0)
            var span = octets.mutableSpan
            var bytes = span.mutableOctets
            bytes.store(address, at: 0)
            let result = unsafe octets.span.octets.withUnsafeBytes {
                unsafe X509_VERIFY_PARAM_set1_ip(
                    parameters, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), address.bitWidth / 8)
            }
            guard result == 1 else {
                ERR_clear_error()
                throw .invalidServerName
            }
        }
    }

    /// How far the stream is.
    public var state: TLSState { handle.state }

    /// Takes ciphertext from the network and goes on with the handshake. ``nextOutgoing(into:)`` and ``read(into:)`` may have
    /// something then.
    ///
    /// Throws ``TLSError/untrusted(_:)`` when the server is not who it should be: the stream has failed then, and what is left to be
    /// sent is an alert at most.
    public mutating func receive(_ ciphertext: RawSpan) throws(TLSError) {
        try handle.receive(ciphertext)
        guard handle.state == .handshaking else { return }
        let isDone: Bool
        do {
            isDone = try handle.shakeHands()
        } catch {
            let result = unsafe SSL_get_verify_result(handle.stream)
            guard result != X509_V_OK, case .authorities = context.policy.rule else { throw error }
            throw .untrusted(CertificateCheck.problem(Int32(truncatingIfNeeded: result)))
        }
        guard isDone else { return }
        // A session goes on with what was checked when it began, under the same rules and for the same server.
        if unsafe SSL_session_reused(handle.stream) != 1 {
            if let problem = CertificateCheck(context.policy).problem(of: handle) {
                handle.fail()
                handle.dropOutgoing()
                throw .untrusted(problem)
            }
        }
        handle.establish()
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

    /// Says to the server that nothing more comes.
    public mutating func close() { handle.close() }

    /// The protocol that ALPN agreed on; nil when the server has none of them, or knows no ALPN.
    public var negotiatedProtocol: String? { handle.negotiatedProtocol }

    /// The version of TLS: 0x0303 for 1.2, 0x0304 for 1.3.
    public var version: UInt16 { handle.version }

    /// True when the handshake went on with an earlier session.
    public var isResumed: Bool { unsafe SSL_session_reused(handle.stream) == 1 }

    /// The session to go on with in another connection; nil when the server has not given one, which it does some time after the
    /// handshake.
    public var session: TLSSession? {
        guard handle.state == .established || handle.state == .closed else { return nil }
        // A reference of our own, which the session gives up.
        guard let session = unsafe SSL_get1_session(handle.stream) else { return nil }
        guard unsafe SSL_SESSION_is_resumable(session) == 1 else {
            unsafe SSL_SESSION_free(session)
            return nil
        }
        return unsafe TLSSession(session, policy: context.policy, identity: identity)
    }
}
