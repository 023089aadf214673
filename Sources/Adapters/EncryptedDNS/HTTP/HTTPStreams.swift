internal import CNGHTTP2

/// What nghttp2's callbacks see of a session: the open streams, and what came of those that are over.
@safe
final class HTTPStreams {
    private let headerByteCount: Int
    private let bufferedByteCount: Int
    private var open = OpenStreams()
    private var outcomes: [(stream: Int32, outcome: HTTPExchange.Outcome)] = []
    /// How many of the outcomes have been taken.
    private var takenCount = 0
    /// True when the server takes no more streams.
    private(set) var isGoingAway = false
    /// True when the server has said what it allows.
    private(set) var hasSettings = false

    init(_ limits: ConnectionLimits) {
        headerByteCount = limits.headerByteCount
        bufferedByteCount = limits.bufferedByteCount
    }

    func add(_ stream: Int32, _ exchange: HTTPExchange) { open.add(stream, exchange) }

    /// Nobody wants this stream any more.
    func forget(_ stream: Int32) { _ = open.remove(stream) }

    /// What came of the next stream that is over; nil when all have been taken.
    func nextOutcome() -> (stream: Int32, outcome: HTTPExchange.Outcome)? {
        guard takenCount < outcomes.count else { return nil }
        let next = outcomes[takenCount]
        takenCount += 1
        if takenCount == outcomes.count {
            outcomes.removeAll(keepingCapacity: true)
            takenCount = 0
        }
        return next
    }

    /// The session that is in a callback may be told to give a stream up.
    private func fail(_ stream: Int32, _ error: ConnectionError, in session: OpaquePointer?) {
        guard open.remove(stream) != nil else { return }
        outcomes.append((stream, .failure(error)))
        // The session is in use by the caller.
        _ = unsafe nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_CANCEL.rawValue)
    }

    fileprivate func beginFields(_ stream: Int32) {
        _ = try? open.change(stream) { (exchange) throws(ConnectionError) in exchange.beginFields() }
    }

    fileprivate func take(_ name: RawSpan, _ value: RawSpan, _ stream: Int32, in session: OpaquePointer?) {
        do throws(ConnectionError) {
            let limit = headerByteCount
            _ = try open.change(stream) { (exchange) throws(ConnectionError) in
                try exchange.take(name, value, limit: limit)
            }
        } catch {
            unsafe fail(stream, error, in: session)
        }
    }

    fileprivate func take(body piece: UnsafeBufferPointer<UInt8>, _ stream: Int32, in session: OpaquePointer?) {
        do throws(ConnectionError) {
            guard open.receivedCount + piece.count <= bufferedByteCount else { throw .bodyTooLong }
            // The piece is nghttp2's for the length of the callback.
            _ = try open.change(stream) { (exchange) throws(ConnectionError) in unsafe try exchange.take(body: piece) }
        } catch {
            unsafe fail(stream, error, in: session)
        }
    }

    /// A whole frame has come.
    fileprivate func take(_ frame: nghttp2_frame_hd, in session: OpaquePointer?) {
        switch UInt32(frame.type) {
        case NGHTTP2_SETTINGS.rawValue: hasSettings = true
        case NGHTTP2_GOAWAY.rawValue: isGoingAway = true
        case NGHTTP2_HEADERS.rawValue:
            do throws(ConnectionError) {
                _ = try open.change(frame.stream_id) { (exchange) throws(ConnectionError) in try exchange.endFields() }
            } catch {
                unsafe fail(frame.stream_id, error, in: session)
            }
            endStream(frame)
        case NGHTTP2_DATA.rawValue: endStream(frame)
        default: break
        }
    }

    private func endStream(_ frame: nghttp2_frame_hd) {
        guard UInt32(frame.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0,
            var exchange = open.remove(frame.stream_id)
        else { return }
        outcomes.append((frame.stream_id, exchange.end()))
    }

    /// A stream has ended; it has been removed before when it ended well.
    fileprivate func close(_ stream: Int32, _ code: UInt32) {
        guard open.remove(stream) != nil else { return }
        let isRefused = code == NGHTTP2_REFUSED_STREAM.rawValue
        outcomes.append((stream, .failure(isRefused ? .refusedStream : .streamReset(code))))
    }

    /// A request was not sent at all.
    fileprivate func discard(_ stream: Int32) {
        guard open.remove(stream) != nil else { return }
        outcomes.append((stream, .failure(.refusedStream)))
    }

    /// Moves what is left of a request's body to `output`; nil when there is no such request.
    fileprivate func send(_ stream: Int32, to output: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool)? {
        try? open.change(stream) { (exchange) throws(ConnectionError) -> (count: Int, isLast: Bool) in
            // The room is nghttp2's for the length of the callback.
            unsafe exchange.send(to: output)
        }
    }
}

/// The callbacks that a session is made with. Their last argument is the ``HTTPStreams`` that ``HTTPSession`` holds for as long as it
/// has a session, and nghttp2 calls them within calls of that session only.
enum HTTPCallbacks {
    static func set(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            unsafe HTTPCallbacks.streams(context)?.beginFields(frame?.pointee.hd.stream_id ?? 0)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            session, frame, name, nameLength, value, valueLength, _, context in
            // Name and value are nghttp2's for the length of the callback.
            let name = unsafe UnsafeBufferPointer(start: name, count: nameLength)
            let value = unsafe UnsafeBufferPointer(start: value, count: valueLength)
            unsafe HTTPCallbacks.streams(context)?
                .take(name.span.bytes, value.span.bytes, frame?.pointee.hd.stream_id ?? 0, in: session)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { session, frame, context in
            guard let frame = unsafe frame else { return 0 }
            unsafe HTTPCallbacks.streams(context)?.take(frame.pointee.hd, in: session)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            session, _, stream, bytes, count, context in
            let piece = unsafe UnsafeBufferPointer(start: bytes, count: count)
            unsafe HTTPCallbacks.streams(context)?.take(body: piece, stream, in: session)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, context in
            unsafe HTTPCallbacks.streams(context)?.close(stream, code)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, context in
            guard let frame = unsafe frame, unsafe UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue else {
                return 0
            }
            unsafe HTTPCallbacks.streams(context)?.discard(frame.pointee.hd.stream_id)
            return 0
        }
    }

    /// Reads a request's body.
    static let body: nghttp2_data_source_read_callback = { _, stream, output, room, flags, _, context in
        let output = unsafe UnsafeMutableRawBufferPointer(start: output, count: room)
        guard let streams = unsafe HTTPCallbacks.streams(context), let sent = unsafe streams.send(stream, to: output)
        else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        if sent.isLast { unsafe flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return sent.count
    }

    private static func streams(_ context: UnsafeMutableRawPointer?) -> HTTPStreams? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<HTTPStreams>.fromOpaque(context).takeUnretainedValue()
    }
}
