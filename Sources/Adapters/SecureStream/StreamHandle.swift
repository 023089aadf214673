internal import ByteAccess
internal import CLibSSL

/// One TLS stream between two memory buffers: an SSL with what has come from the network and what is to go there.
///
///     handshaking ── handshake done, certificate trusted ──▶ established ── close_notify, either way ──▶ closed
///          │                                                      │
///          └───────────────── an error ──▶ failed ◀───────────────┘
@safe
struct StreamHandle: ~Copyable {
    let stream: OpaquePointer
    /// Bytes from the network; it belongs to the stream.
    private let incoming: OpaquePointer
    /// Bytes for the network; it belongs to the stream.
    private let outgoing: OpaquePointer
    private(set) var state: TLSState = .handshaking

    init(_ context: borrowing ContextHandle) throws(TLSError) {
        guard let stream = unsafe SSL_new(context.context) else {
            ERR_clear_error()
            throw .unavailable
        }
        guard let incoming = unsafe clibssl_new_memory() else {
            unsafe SSL_free(stream)
            throw .unavailable
        }
        guard let outgoing = unsafe clibssl_new_memory() else {
            unsafe BIO_free(incoming)
            unsafe SSL_free(stream)
            throw .unavailable
        }
        // The stream takes both over.
        unsafe SSL_set_bio(stream, incoming, outgoing)
        unsafe self.stream = stream
        unsafe self.incoming = incoming
        unsafe self.outgoing = outgoing
    }

    deinit {
        // The stream is this value's own and goes away here, with both buffers.
        unsafe SSL_free(stream)
    }

    /// Takes bytes from the network.
    mutating func receive(_ ciphertext: RawSpan) throws(TLSError) {
        guard state != .failed else { throw .closed }
        if ciphertext.isEmpty { return }
        guard let count = Int32(exactly: ciphertext.byteCount) else { throw .unavailable }
        // OpenSSL copies `count` bytes.
        let written = unsafe ciphertext.withUnsafeBytes { unsafe BIO_write(incoming, $0.baseAddress, count) }
        guard written == count else {
            state = .failed
            throw .unavailable
        }
    }

    /// How many bytes there are for the network.
    var outgoingCount: Int { unsafe Int(BIO_ctrl_pending(outgoing)) }

    /// Moves bytes for the network to the start of `output`; returns how many.
    mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int {
        if output.isEmpty { return 0 }
        let room = Int32(clamping: output.byteCount)
        // OpenSSL writes at most `room` bytes.
        let count = unsafe output.withUnsafeMutableBytes { unsafe BIO_read(outgoing, $0.baseAddress, room) }
        return max(0, Int(count))
    }

    /// Forgets what was to go to the network.
    mutating func dropOutgoing() {
        unsafe clibssl_clear_memory(outgoing)
    }

    /// Goes on with the handshake as far as the bytes that have come allow. True when it is done.
    mutating func shakeHands() throws(TLSError) -> Bool {
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(stream)
        if result == 1 { return true }
        if unsafe SSL_get_error(stream, result) == SSL_ERROR_WANT_READ { return false }
        throw failure()
    }

    /// The handshake is done and the other side is trusted.
    mutating func establish() { state = .established }

    /// Nothing more is to be done with the stream.
    mutating func fail() { state = .failed }

    /// Encrypts all of `plaintext`.
    mutating func write(_ plaintext: RawSpan) throws(TLSError) {
        switch state {
        case .handshaking: throw .notEstablished
        case .closed, .failed: throw .closed
        case .established: break
        }
        if plaintext.isEmpty { return }
        clearErrors()
        var written = 0
        // OpenSSL reads as many bytes as it is told; a memory buffer takes all of them.
        let result = unsafe plaintext.withUnsafeBytes {
            unsafe SSL_write_ex(stream, $0.baseAddress, $0.count, &written)
        }
        guard result == 1, written == plaintext.byteCount else { throw failure() }
    }

    /// Decrypts into the start of `output`.
    ///
    /// - Parameter answersClose: False to leave the own direction open when the other one is closed.
    mutating func read(
        into output: inout MutableRawSpan, answersClose: Bool = true
    ) throws(TLSError) -> TLSReadResult {
        switch state {
        case .handshaking: return .needsInput
        case .closed: return .closed
        case .failed: throw .closed
        case .established: break
        }
        if output.isEmpty { return .needsInput }
        // To find out that there is nothing costs OpenSSL a third of what decrypting a short message does.
        if unsafe BIO_ctrl_pending(incoming) == 0 && SSL_has_pending(stream) == 0 { return .needsInput }
        clearErrors()
        var count = 0
        // OpenSSL writes at most as many bytes as it is told.
        let result = unsafe output.withUnsafeMutableBytes {
            unsafe SSL_read_ex(stream, $0.baseAddress, $0.count, &count)
        }
        if result == 1 { return .bytes(count) }
        switch unsafe SSL_get_error(stream, result) {
        case SSL_ERROR_WANT_READ: return .needsInput
        case SSL_ERROR_ZERO_RETURN:
            // Without a word of ours, OpenSSL takes the session for one that is not to be gone on with.
            if answersClose { close() }
            return .closed
        default: throw failure()
        }
    }

    /// Says that nothing more is sent.
    mutating func close() {
        guard state == .established else { return }
        ERR_clear_error()
        // It writes close_notify; whether the other side's has come does not matter.
        _ = unsafe SSL_shutdown(stream)
        ERR_clear_error()
        state = .closed
    }

    /// The protocol that ALPN agreed on.
    var negotiatedProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(stream, &bytes, &count)
        guard let bytes = unsafe bytes, count > 0 else { return nil }
        // The bytes belong to the stream, which outlives this copy.
        return unsafe String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    /// 0x0303 for TLS 1.2, 0x0304 for TLS 1.3.
    var version: UInt16 { UInt16(truncatingIfNeeded: unsafe SSL_version(stream)) }

    /// Leaves no error of an earlier call behind, which would be taken for one of the next. There hardly ever is one, and to look costs
    /// much less than to clear all places for errors.
    private func clearErrors() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    private mutating func failure() -> TLSError {
        state = .failed
        let code = ERR_peek_last_error()
        ERR_clear_error()
        return .protocolFailure(reason: Int32(truncatingIfNeeded: code & 0x7F_FFFF))
    }
}

/// How far a TLS stream is.
public enum TLSState: Hashable, Sendable {
    /// The sides do not know each other yet. Nothing that is written gets through.
    case handshaking
    /// The other side is who it should be: bytes can be written and read.
    case established
    /// One of the sides has said that nothing more comes from it.
    case closed
    /// Something went wrong: nothing can be written or read.
    case failed
}

/// What came of reading.
public enum TLSReadResult: Hashable, Sendable {
    /// This many bytes of plaintext.
    case bytes(Int)
    /// None yet: more has to come from the network.
    case needsInput
    /// None ever: the other side has said that it is done.
    case closed
}
