internal import ByteAccess
internal import CNGHTTP2

/// The client's side of HTTP/2 between two buffers: an nghttp2_session with the streams that its callbacks see.
@safe
struct HTTPSession: ~Copyable {
    private let session: OpaquePointer
    let streams: HTTPStreams

    /// A session whose preface and SETTINGS are ready to be written.
    init(_ limits: ConnectionLimits) throws(ConnectionError) {
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
        // The session is this value's own. It calls nothing back while it goes away.
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

    /// Makes a request of a query whose ID is 0 already; returns its stream.
    mutating func submit(_ query: [UInt8], to target: DoHTarget) throws(ConnectionError) -> Int32 {
        var fields = HeaderBlock()
        fields.append(":method", target.method == .post ? "POST" : "GET")
        fields.append(":scheme", "https")
        fields.append(":authority", target.authority)
        switch target.method {
        case .post: fields.append(":path", target.path)
        // Each path is another one: in the table of the header's compression it would only push out what comes again.
        case .get: fields.append(":path", target.path(asking: query), isIndexed: false)
        }
        fields.append("accept", "application/dns-message")
        if target.method == .post {
            fields.append("content-type", "application/dns-message")
            fields.append("content-length", String(query.count))
        }
        let body = target.method == .post ? query : []
        // Names and values are copied; the body is read from the streams by its callback.
        let stream = unsafe fields.withFields { fields, count in
            guard !body.isEmpty else {
                return unsafe nghttp2_submit_request(session, nil, fields, count, nil, nil)
            }
            var provider = unsafe nghttp2_data_provider(
                source: nghttp2_data_source(ptr: nil), read_callback: HTTPCallbacks.body)
            return unsafe nghttp2_submit_request(session, nil, fields, count, &provider, nil)
        }
        guard stream > 0 else { throw .http2(stream) }
        streams.add(stream, query: body)
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

    /// What is to be sent now.
    mutating func takeOutgoing() throws(ConnectionError) -> [UInt8] {
        var all: [UInt8] = []
        while true {
            var start: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &start)
            guard count >= 0 else { throw .http2(Int32(clamping: count)) }
            if count == 0 { return all }
            // The bytes are nghttp2's until its next call.
            unsafe all.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
        }
    }
}

/// Header fields in the form that nghttp2 takes.
struct HeaderBlock {
    private var text: [UInt8] = []
    private var fields: [(name: Range<Int>, value: Range<Int>, isIndexed: Bool)] = []

    /// Adds a field with a name in lower case.
    mutating func append(_ name: String, _ value: String, isIndexed: Bool = true) {
        let start = text.count
        text.append(contentsOf: name.utf8)
        let middle = text.count
        text.append(contentsOf: value.utf8)
        fields.append((start..<middle, middle..<text.count, isIndexed))
    }

    /// Lends the fields for the length of the call.
    mutating func withFields<Result>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
        let fields = fields
        // The ranges are within the text, which is not empty; nghttp2 does not write into it.
        return unsafe text.withUnsafeMutableBufferPointer { text in
            let list = unsafe fields.map { field in
                unsafe nghttp2_nv(
                    name: text.baseAddress.map { unsafe $0 + field.name.lowerBound },
                    value: text.baseAddress.map { unsafe $0 + field.value.lowerBound },
                    namelen: field.name.count, valuelen: field.value.count,
                    flags: UInt8(field.isIndexed ? NGHTTP2_NV_FLAG_NONE.rawValue : NGHTTP2_NV_FLAG_NO_INDEX.rawValue))
            }
            return unsafe list.withUnsafeBufferPointer { unsafe body($0.baseAddress, $0.count) }
        }
    }
}
