internal import ByteAccess
internal import CNGHTTP2

/// The client's side of HTTP/2 between two buffers: an nghttp2_session with the streams that its callbacks see.
@safe
struct HTTPSession: ~Copyable {
    private let session: OpaquePointer
    private var fields: RequestFields
    let streams: HTTPStreams

    /// A session whose preface and SETTINGS are ready to be written, for requests to one resource.
    init(_ limits: ConnectionLimits, _ target: DoHTarget) throws(ConnectionError) {
        let streams = HTTPStreams(limits)
        let session = unsafe try Self.makeSession(streams)
        var settings = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                value: UInt32(clamping: limits.headerByteCount)),
        ]
        // The entries are copied.
        guard unsafe nghttp2_submit_settings(session, 0, &settings, settings.count) == 0 else {
            unsafe nghttp2_session_del(session)
            throw Self.outOfMemory
        }
        unsafe self.session = session
        fields = RequestFields(target)
        self.streams = streams
    }

    /// The server has more written than it reads.
    static var flooded: ConnectionError { .http2(NGHTTP2_ERR_FLOODED.rawValue) }

    private static var outOfMemory: ConnectionError { .http2(NGHTTP2_ERR_NOMEM.rawValue) }

    /// A session that calls `streams` back, which has to live as long.
    private static func makeSession(_ streams: HTTPStreams) throws(ConnectionError) -> OpaquePointer {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        // nghttp2 copies both into the session; they are freed here.
        guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks = unsafe callbacks else {
            throw outOfMemory
        }
        defer { unsafe nghttp2_session_callbacks_del(callbacks) }
        guard unsafe nghttp2_option_new(&options) == 0, let options = unsafe options else { throw outOfMemory }
        defer { unsafe nghttp2_option_del(options) }
        unsafe HTTPCallbacks.set(callbacks)
        // Until the server says how many it allows, one request goes out: those that it refuses would have to be asked again.
        unsafe nghttp2_option_set_peer_max_concurrent_streams(options, 1)
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        var session: OpaquePointer?
        let context = unsafe Unmanaged.passUnretained(streams).toOpaque()
        guard unsafe nghttp2_session_client_new2(&session, callbacks, context, options) == 0,
            let session = unsafe session
        else { throw outOfMemory }
        return unsafe session
    }

    deinit {
        // The session is this value's own. It calls nothing back while it goes away, and does so before the fields that it refers to.
        unsafe nghttp2_session_del(session)
    }

    /// The most streams that the server allows at one time; it is not known before its SETTINGS.
    var streamLimit: Int? {
        guard streams.hasSettings else { return nil }
        return Int(unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// True when another request can be made.
    var takesRequests: Bool {
        unsafe !streams.isGoingAway && nghttp2_session_check_request_allowed(session) != 0
    }

    /// True when neither side has anything more to say.
    var isOver: Bool {
        unsafe nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// Makes a request of a query whose ID is 0 already, and was another one; returns its stream.
    mutating func submit(
        _ query: consuming [UInt8], queryID: UInt16, to target: DoHTarget
    ) throws(ConnectionError) -> Int32 {
        let stream: Int32
        switch target.method {
        case .post:
            // The body is read from the streams by its callback.
            stream = unsafe fields.withFields(bodyLength: query.count) { fields, count in
                var provider = unsafe nghttp2_data_provider(
                    source: nghttp2_data_source(ptr: nil), read_callback: HTTPCallbacks.body)
                return unsafe nghttp2_submit_request(session, nil, fields, count, &provider, nil)
            }
        case .get:
            stream = unsafe fields.withFields(path: target.path(asking: query)) { fields, count in
                unsafe nghttp2_submit_request(session, nil, fields, count, nil, nil)
            }
            query = []
        }
        guard stream > 0 else { throw .http2(stream) }
        streams.add(stream, HTTPExchange(query: query, queryID: queryID))
        return stream
    }

    /// Gives a stream up.
    mutating func cancel(_ stream: Int32) {
        streams.forget(stream)
        _ = unsafe nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_CANCEL.rawValue)
    }

    /// Asks whether the server is there.
    mutating func ping() { _ = unsafe nghttp2_submit_ping(session, 0, nil) }

    /// Says that nothing more comes.
    mutating func goAway() { _ = unsafe nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue) }

    /// Takes bytes of the server.
    mutating func receive(_ bytes: RawSpan) throws(ConnectionError) {
        // nghttp2 reads as many bytes as it is told, and calls back.
        let result = unsafe bytes.withUnsafeBytes {
            unsafe nghttp2_session_mem_recv(
                session, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
        guard result == bytes.byteCount else { throw .http2(Int32(clamping: result)) }
    }

    /// Adds what is to be sent now to `output`.
    mutating func takeOutgoing(into output: inout [UInt8]) throws(ConnectionError) {
        while true {
            var start: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &start)
            guard count >= 0 else { throw .http2(Int32(clamping: count)) }
            if count == 0 { return }
            // The bytes are nghttp2's until its next call.
            unsafe output.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
        }
    }
}
