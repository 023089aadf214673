internal import ByteAccess
internal import CNGHTTP2

/// The server's side of DNS over HTTPS (RFC 8484) between two buffers: HTTP/2 on one connection, without its TLS, socket and clock.
///
/// Bytes of the client go into ``receive(_:)``; afterwards ``nextEvent()`` says what the client asks, and
/// ``takeOutgoing()`` has bytes for it. What is no query gets its status here: 400, 404, 405, 413, 415 or 431. Memory is bounded:
/// there are so many streams, a header so long, and so many bytes of requests and answers before further requests are refused
/// as such that can be made again (RFC 9113 §8.7). Who resets streams by the hundreds, or has PINGs answered without reading, is
/// sent away.
@safe
public struct DoHServerSession: ~Copyable {
    private let session: OpaquePointer
    private let streams: DoHServerStreams
    private let limits: DoHServerLimits
    private let path: [UInt8]
    /// What became of requests.
    public private(set) var counts = DoHServerCounts()

    /// A session whose SETTINGS are ready to be sent.
    ///
    /// - Parameter path: Where queries are taken, without a query part: `/dns-query`.
    public init(path: String, limits: DoHServerLimits = DoHServerLimits()) throws(ConnectionError) {
        let streams = DoHServerStreams(limits)
        let session = unsafe try Self.makeSession(streams, limits)
        let settings: [(nghttp2_settings_id, Int)] = [
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streamCount),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.headerByteCount),
            // Answers are short: who depends on whom is not worth a tree.
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        let entries = settings.map { id, value in
            nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value))
        }
        // The entries are copied.
        let result = unsafe entries.withUnsafeBufferPointer {
            unsafe nghttp2_submit_settings(session, 0, $0.baseAddress, $0.count)
        }
        guard result == 0 else {
            unsafe nghttp2_session_del(session)
            throw Self.outOfMemory
        }
        unsafe self.session = session
        self.streams = streams
        self.limits = limits
        self.path = Array(path.utf8)
    }

    private static var outOfMemory: ConnectionError { .http2(NGHTTP2_ERR_NOMEM.rawValue) }

    /// A session that calls `streams` back, which has to live as long.
    private static func makeSession(
        _ streams: DoHServerStreams, _ limits: DoHServerLimits
    ) throws(ConnectionError) -> OpaquePointer {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        // nghttp2 copies both into the session; they are freed here.
        guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks = unsafe callbacks else {
            throw outOfMemory
        }
        defer { unsafe nghttp2_session_callbacks_del(callbacks) }
        guard unsafe nghttp2_option_new(&options) == 0, let options = unsafe options else { throw outOfMemory }
        defer { unsafe nghttp2_option_del(options) }
        unsafe DoHServerCallbacks.set(callbacks)
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        unsafe nghttp2_option_set_stream_reset_rate_limit(options, limits.resetBurst, limits.resetsPerSecond)
        // PINGs and SETTINGS that are to be acknowledged and cannot leave.
        unsafe nghttp2_option_set_max_outbound_ack(options, 128)
        var session: OpaquePointer?
        let context = unsafe Unmanaged.passUnretained(streams).toOpaque()
        guard unsafe nghttp2_session_server_new2(&session, callbacks, context, options) == 0,
            let session = unsafe session
        else { throw outOfMemory }
        return unsafe session
    }

    deinit {
        // The session is this value's own. It calls nothing back while it goes away.
        unsafe nghttp2_session_del(session)
    }

    /// True when neither side has anything more to say.
    public var isOver: Bool {
        unsafe nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// How many bytes of requests and answers are kept.
    public var bufferedByteCount: Int { streams.byteCount }

    /// Takes bytes of the client. Throws when the session cannot go on; what is to be sent may still be.
    public mutating func receive(_ bytes: RawSpan) throws(ConnectionError) {
        // nghttp2 reads as many bytes as it is told, and calls back.
        let result = unsafe bytes.withUnsafeBytes {
            unsafe nghttp2_session_mem_recv(
                session, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
        guard result == bytes.byteCount else { throw .http2(Int32(clamping: result)) }
    }

    /// What the client did next; nil when nothing more came. Requests that are no queries are answered on the way.
    public mutating func nextEvent() -> DoHServerEvent? {
        while let event = streams.nextEvent() {
            switch event {
            case .abandoned(let stream): return .abandoned(stream: stream)
            case .request(let stream, let request):
                guard streams.byteCount <= limits.bufferedByteCount else {
                    counts.overfull &+= 1
                    _ = unsafe nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_REFUSED_STREAM.rawValue)
                    continue
                }
                do throws(DoHRefusal) {
                    let message = try request.query(at: path)
                    counts.queries &+= 1
                    streams.wait(stream)
                    return .query(stream: stream, message: message)
                } catch {
                    respond(stream, error)
                }
            }
        }
        return nil
    }

    /// Answers the query of a stream with a DNS message, and says for how long caches may keep it. Nothing comes of it when the stream
    /// is gone.
    public mutating func answer(_ stream: Int32, _ message: RawSpan) {
        guard streams.stopWaiting(stream) else { return }
        var fields = ResponseFields()
        fields.append(":status", "200")
        fields.append("content-type", "application/dns-message")
        fields.append("content-length", String(message.byteCount))
        fields.append("cache-control", "max-age=\(MessageFreshness.maximumAge(of: message))")
        streams.put(message, stream)
        // Names and values are copied; the body is read from the streams by its callback.
        let result = unsafe fields.withFields { fields, count in
            var provider = unsafe nghttp2_data_provider(
                source: nghttp2_data_source(ptr: nil), read_callback: DoHServerCallbacks.body)
            return unsafe nghttp2_submit_response(session, stream, fields, count, &provider)
        }
        if result != 0 { streams.drop(stream) }
    }

    /// Answers the query of a stream with a status instead of a message.
    public mutating func refuse(_ stream: Int32, _ refusal: DoHRefusal) {
        guard streams.stopWaiting(stream) else { return }
        respond(stream, refusal)
    }

    private mutating func respond(_ stream: Int32, _ refusal: DoHRefusal) {
        counts.refused &+= 1
        var fields = ResponseFields()
        fields.append(":status", String(refusal.rawValue))
        if refusal == .methodNotAllowed { fields.append("allow", "GET, POST") }
        fields.append("content-length", "0")
        // Names and values are copied.
        _ = unsafe fields.withFields { fields, count in
            unsafe nghttp2_submit_response(session, stream, fields, count, nil)
        }
    }

    /// Says that no further requests are taken, and that the connection ends.
    public mutating func goAway() { _ = unsafe nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue) }

    /// What is to be sent next, up to the end of an answer: a record of TLS of its own for each serves clients that look for one
    /// answer each time they read (dnsperf). Longer ones come in pieces; nothing is left when nothing comes.
    public mutating func takeOutgoing() throws(ConnectionError) -> [UInt8] {
        var all: [UInt8] = []
        while all.count < Self.pieceByteCount {
            var start: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &start)
            guard count >= 0 else { throw .http2(Int32(clamping: count)) }
            if count == 0 { return all }
            // The bytes are nghttp2's until its next call.
            let bytes = unsafe UnsafeBufferPointer(start: start, count: count)
            unsafe all.append(contentsOf: bytes)
            if unsafe Self.isEndOfStream(bytes) { return all }
        }
        return all
    }

    /// As many bytes as a record of TLS has at most (RFC 8446 §5.1).
    private static var pieceByteCount: Int { 16_384 }

    /// True when the bytes are, or begin with, a frame that is a stream's last (RFC 9113 §4.1).
    private static func isEndOfStream(_ frame: UnsafeBufferPointer<UInt8>) -> Bool {
        guard frame.count >= 9 else { return false }
        // Type and flags are behind a length of three bytes.
        let (type, flags) = unsafe (UInt32(frame[3]), UInt32(frame[4]))
        return (type == NGHTTP2_DATA.rawValue || type == NGHTTP2_HEADERS.rawValue)
            && flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0
    }
}
