internal import ByteAccess
internal import CNGHTTP2

/// What nghttp2's callbacks see of a server's session: requests that come in, and answers that leave.
@safe
final class DoHServerStreams {
    /// What became of a stream that its owner has not been told yet.
    enum Event {
        /// The request is whole.
        case request(stream: Int32, DoHRequest)
        /// The stream is over although its query was not answered.
        case abandoned(stream: Int32)
    }

    private let limits: DoHServerLimits
    /// Requests that are not whole.
    private var incoming: [Int32: DoHRequest] = [:]
    /// Answers, each with how much of it has left.
    private var outgoing: [Int32: (message: [UInt8], sentCount: Int)] = [:]
    /// The streams whose queries the owner is to answer.
    private var waiting: Set<Int32> = []
    private var events: [Event] = []
    private var eventIndex = 0
    /// How many bytes are kept for all streams together.
    private(set) var byteCount = 0

    init(_ limits: DoHServerLimits) {
        self.limits = limits
    }

    /// The next thing that happened; nil when nothing more did.
    func nextEvent() -> Event? {
        guard eventIndex < events.count else {
            events.removeAll(keepingCapacity: events.count <= 16)
            eventIndex = 0
            return nil
        }
        defer { eventIndex += 1 }
        return events[eventIndex]
    }

    /// The owner has got the query of a stream.
    func wait(_ stream: Int32) { waiting.insert(stream) }

    /// The owner answers a query. False when nobody waits for that.
    func stopWaiting(_ stream: Int32) -> Bool { waiting.remove(stream) != nil }

    /// Keeps an answer until the session asks for it.
    func put(_ message: RawSpan, _ stream: Int32) {
        outgoing[stream] = ([UInt8](copying: message), 0)
        byteCount += message.byteCount
    }

    /// Forgets the answer of a stream.
    func drop(_ stream: Int32) {
        if let answer = outgoing.removeValue(forKey: stream) { byteCount -= answer.message.count }
    }

    // MARK: For callbacks

    fileprivate func begin(_ stream: Int32) { incoming[stream] = DoHRequest() }

    fileprivate func take(_ name: RawSpan, _ value: RawSpan, _ stream: Int32) {
        change(stream) { $0.add(name, value, limit: limits.headerByteCount) }
    }

    fileprivate func take(body piece: RawSpan, _ stream: Int32, in session: OpaquePointer?) {
        guard byteCount <= limits.bufferedByteCount else {
            remove(stream)
            // The session is in use by the caller. Nothing was done with the request: it can be made again (RFC 9113 §8.7).
            _ = unsafe nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_REFUSED_STREAM.rawValue)
            return
        }
        change(stream) { $0.add(body: piece) }
    }

    private func change(_ stream: Int32, _ body: (inout DoHRequest) -> Void) {
        guard var request = incoming.removeValue(forKey: stream) else { return }
        byteCount -= request.byteCount
        body(&request)
        byteCount += request.byteCount
        incoming[stream] = request
    }

    @discardableResult
    private func remove(_ stream: Int32) -> DoHRequest? {
        guard let request = incoming.removeValue(forKey: stream) else { return nil }
        byteCount -= request.byteCount
        return request
    }

    /// A whole frame has come.
    fileprivate func take(_ frame: nghttp2_frame_hd) {
        let isLast = UInt32(frame.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
        let type = UInt32(frame.type)
        guard isLast, type == NGHTTP2_HEADERS.rawValue || type == NGHTTP2_DATA.rawValue,
            let request = remove(frame.stream_id)
        else { return }
        events.append(.request(stream: frame.stream_id, request))
    }

    /// A stream is over. What its owner has not been told of its request is not told any more.
    fileprivate func close(_ stream: Int32) {
        remove(stream)
        drop(stream)
        if waiting.remove(stream) != nil { events.append(.abandoned(stream: stream)) }
        // Who makes requests and resets them does so at once: it is the last one.
        let index = events[eventIndex...].lastIndex { event in
            if case .request(stream, _) = event { true } else { false }
        }
        if let index { events.remove(at: index) }
    }

    /// Moves what is left of an answer to `output`; nil when there is no such answer.
    fileprivate func send(_ stream: Int32, to output: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool)? {
        guard let answer = outgoing[stream] else { return nil }
        let rest = answer.message[answer.sentCount...]
        let count = min(rest.count, output.count)
        // Both are `count` bytes long at least.
        unsafe output.copyBytes(from: rest.prefix(count))
        outgoing[stream]?.sentCount += count
        return (count, count == rest.count)
    }
}

/// The callbacks that a server's session is made with. Their last argument is the ``DoHServerStreams`` that ``DoHServerSession`` holds for
/// as long as it has a session, and nghttp2 calls them within calls of that session only.
enum DoHServerCallbacks {
    static func set(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            // What is behind a body says nothing that counts.
            guard let frame = unsafe frame, unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
            unsafe DoHServerCallbacks.streams(context)?.begin(frame.pointee.hd.stream_id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameLength, value, valueLength, _, context in
            guard let frame = unsafe frame, unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
            // Name and value are nghttp2's for the length of the callback.
            let name = unsafe UnsafeBufferPointer(start: name, count: nameLength)
            let value = unsafe UnsafeBufferPointer(start: value, count: valueLength)
            unsafe DoHServerCallbacks.streams(context)?.take(
                name.span.bytes, value.span.bytes, frame.pointee.hd.stream_id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            guard let frame = unsafe frame else { return 0 }
            unsafe DoHServerCallbacks.streams(context)?.take(frame.pointee.hd)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            session, _, stream, bytes, count, context in
            let piece = unsafe UnsafeBufferPointer(start: bytes, count: count)
            unsafe DoHServerCallbacks.streams(context)?.take(body: piece.span.bytes, stream, in: session)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, context in
            unsafe DoHServerCallbacks.streams(context)?.close(stream)
            return 0
        }
    }

    /// Reads an answer.
    static let body: nghttp2_data_source_read_callback = { _, stream, output, room, flags, _, context in
        let output = unsafe UnsafeMutableRawBufferPointer(start: output, count: room)
        guard let streams = unsafe DoHServerCallbacks.streams(context),
            let sent = unsafe streams.send(stream, to: output)
        else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        if sent.isLast { unsafe flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return sent.count
    }

    private static func streams(_ context: UnsafeMutableRawPointer?) -> DoHServerStreams? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<DoHServerStreams>.fromOpaque(context).takeUnretainedValue()
    }
}
