internal import ByteAccess
internal import CLibSSL

/// The server's side of a TLS stream, between two buffers in memory. The caller moves ciphertext between them and the network.
public struct TLSServer: ~Copyable {
    private let context: TLSServerContext
    private var handle: StreamHandle
    private var bound = HandshakeBound()
    private let answersClose: Bool

    /// Waits for a ClientHello.
    ///
    /// - Parameter answersClose: False to go on writing when the client has said that nothing more comes from it (RFC 8446 §6.1).
    public init(_ context: TLSServerContext, answersClose: Bool = true) throws(TLSError) {
        let handle = try StreamHandle(context.handle)
        unsafe SSL_set_accept_state(handle.stream)
        self.handle = handle
        self.context = context
        self.answersClose = answersClose
    }

    /// How far the stream is.
    public var state: TLSState { handle.state }

    /// Takes ciphertext from the network and goes on with the handshake.
    ///
    /// Throws ``TLSError/handshakeTooLong`` for a client that sends, or announces, more than any client needs before the handshake is
    /// done. What it sends behind that in the same piece does not count.
    public mutating func receive(_ ciphertext: RawSpan) throws(TLSError) {
        guard handle.state == .handshaking else { return try handle.receive(ciphertext) }
        // With an earlier version than 1.3 there is one ClientHello only, and encrypted handshake records may come next.
        guard bound.admits(ciphertext, isReadable: handle.version >= Self.version13) else {
            handle.fail()
            throw .handshakeTooLong
        }
        try handle.receive(ciphertext)
        if try handle.shakeHands() { return handle.establish() }
        guard bound.byteCount <= HandshakeBound.maximumByteCount else {
            handle.fail()
            throw .handshakeTooLong
        }
    }

    private static var version13: UInt16 { 0x0304 }

    /// How many bytes of ciphertext there are for the network.
    public var outgoingCount: Int { handle.outgoingCount }

    /// Moves ciphertext for the network to the start of `output`; returns how many bytes, 0 when there are none.
    public mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int { handle.nextOutgoing(into: &output) }

    /// Encrypts all of `plaintext`. Throws ``TLSError/notEstablished`` before the handshake is done.
    public mutating func write(_ plaintext: RawSpan) throws(TLSError) { try handle.write(plaintext) }

    /// Decrypts into the start of `output`.
    public mutating func read(into output: inout MutableRawSpan) throws(TLSError) -> TLSReadResult {
        let result = try handle.read(into: &output, answersClose: answersClose)
        // A whole ClientHello is answered with a refusal. One that is to go on is not waited for: it may say to have 128 KiB.
        if result == .needsInput, handle.state == .established, handle.version < Self.version13,
            unsafe SSL_in_init(handle.stream) == 1
        {
            handle.fail()
            throw .protocolFailure(reason: SSL_R_NO_RENEGOTIATION)
        }
        return result
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

    /// The version of TLS: 0x0303 for 1.2, 0x0304 for 1.3.
    public var version: UInt16 { handle.version }

    /// True when the client went on with an earlier session.
    public var isResumed: Bool { unsafe SSL_session_reused(handle.stream) == 1 }
}
