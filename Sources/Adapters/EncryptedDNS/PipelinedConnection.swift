internal import ByteAccess
internal import DNSMessage
public import DNSProxy
public import Provider
public import SecureStream

/// DNS over TLS: RFC 7858. The context offers the protocol `dot`.
public typealias DoTConnection = PipelinedConnection<TLSClient>
/// DNS over TCP: RFC 7766.
public typealias StreamConnection = PipelinedConnection<PlainStream>

/// A connection to a server on which many queries are under way, and answers come in any order (RFC 7766 §6.2.1.1).
///
/// It has no socket and no clock. Bytes from the socket go into ``receive(_:at:)``; afterwards, and after every other call,
/// ``nextEvent()`` says what happened and ``nextOutgoing(into:)`` has bytes for the socket. Queries that come before the server has
/// proved who it is wait here, and are not written anywhere when it does not.
///
/// Each query has an ID of the connection's own on the wire, so that equal IDs of clients do not meet.
public struct PipelinedConnection<Stream: ByteStream & ~Copyable>: ~Copyable, DNSConnection {
    private var stream: Stream
    private var progress: ConnectionProgress
    private var reader = FramedMessageReader()
    /// Room for what the server says.
    private var plaintext: [UInt8] = []
    /// The message whose end has not come.
    private var partial: [UInt8] = []
    /// Messages that are to be written when the handshake is done, and bytes are taken.
    private var waiting: [UInt8] = []
    private var lastKey: UInt16 = 0
    /// How many messages came that nobody waited for: late answers, for the most part.
    public private(set) var unexpectedCount = 0

    /// A connection over a stream that has just been begun.
    public init(_ stream: consuming Stream, limits: ConnectionLimits = ConnectionLimits(), at now: Instant) {
        self.stream = stream
        progress = ConnectionProgress(limits, at: now)
        if self.stream.state == .established { progress.becomeOpen(at: now) }
    }

    /// The next thing that happened; nil when the owner has been told everything.
    public mutating func nextEvent() -> ConnectionEvent? { progress.nextEvent() }

    /// How many exchanges are under way.
    public var exchangeCount: Int { progress.exchanges.count }

    /// True when the connection is over.
    public var isOver: Bool { progress.phase == .over }

    /// True when another query can be sent. Not while the server is suspected to be gone.
    public var canTakeMore: Bool {
        progress.phase != .over && !progress.isSuspect && progress.exchanges.count < progress.limits.exchangeCount
            && stream.outgoingCount + waiting.count < progress.limits.outgoingByteCount
    }

    /// True when nothing but what is under way keeps the connection from taking another query.
    public var isBusy: Bool { progress.phase != .over && !progress.isSuspect && !canTakeMore }

    /// How many bytes there are for the socket, before those are encrypted that are not yet.
    public var outgoingCount: Int { stream.outgoingCount + (progress.phase == .open ? waiting.count : 0) }

    /// Moves bytes for the socket to the start of `output`; returns how many, 0 when there are none. The queries that were sent since
    /// the last call go together.
    public mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int {
        write()
        return stream.nextOutgoing(into: &output)
    }

    /// Sends a query, padded when the stream is encrypted.
    ///
    /// - Parameter deadline: When nobody waits for the answer any more.
    public mutating func send(
        _ query: RawSpan, exchange: ExchangeID, deadline: Instant, at now: Instant
    ) throws(SendError) {
        guard progress.phase != .over else { throw .closed }
        guard DNSHeader.byteCount...progress.limits.queryByteCount ~= query.byteCount else { throw .invalidQuery }
        guard !progress.exchanges.contains(exchange) else { throw .repeatedExchange }
        guard progress.exchanges.count < progress.limits.exchangeCount,
            stream.outgoingCount + waiting.count < progress.limits.outgoingByteCount
        else { throw .full }
        repeat { lastKey &+= 1 } while progress.exchanges.contains(key: Int32(lastKey))
        if !Stream.isEncrypted || query.byteCount % EDNSFields.queryPaddingBlock == 0 {
            append(query, id: lastKey)
        } else {
            var message = [UInt8](copying: query)
            QueryPadding.pad(&message)
            append(message.span.octets, id: lastKey)
        }
        progress.exchanges.add(
            exchange, key: Int32(lastKey), queryID: query.bigEndianUInt16(at: 0), deadline: deadline,
            patience: progress.limits.patience, at: now)
        progress.noteIdleness(at: now)
    }

    /// Has a message wait to be written. Its length and itself go out together (RFC 7858 §3.3).
    private mutating func append(_ message: RawSpan, id: UInt16) {
        let start = waiting.count
        waiting.append(UInt8(truncatingIfNeeded: message.byteCount >> 8))
        waiting.append(UInt8(truncatingIfNeeded: message.byteCount))
        // Every bit pattern is a byte.
        unsafe message.withUnsafeBytes { unsafe waiting.append(contentsOf: $0) }
        waiting[start + 2] = UInt8(truncatingIfNeeded: id >> 8)
        waiting[start + 3] = UInt8(truncatingIfNeeded: id)
    }

    /// Nobody waits for this exchange any more. It ends without an event.
    public mutating func cancel(_ exchange: ExchangeID, at now: Instant) {
        _ = progress.exchanges.remove(exchange)
        progress.noteIdleness(at: now)
    }

    /// What the next connection to the same server can go on with; nil when the server gave nothing, or there is no TLS.
    public mutating func takeResumption() -> TLSSession? { stream.makeSession() }

    /// Takes bytes from the socket.
    public mutating func receive(_ bytes: RawSpan, at now: Instant) {
        guard progress.phase != .over, !bytes.isEmpty else { return }
        do throws(TLSError) {
            try stream.receive(bytes)
            if stream.state == .established, progress.phase == .handshaking {
                progress.becomeOpen(at: now)
            }
            try readAll()
        } catch {
            end(ConnectionError(error))
        }
        progress.noteIdleness(at: now)
    }

    /// The socket has nothing more, or has failed.
    public mutating func endOfStream() { end(.closedByServer) }

    /// Ends the connection: what is under way fails with ``ConnectionError/abandoned``.
    public mutating func abandon() { end(.abandoned) }

    /// When ``handleDeadlines(at:)`` is to be called; nil when there is no need to.
    public var nextDeadline: Instant? { progress.nextDeadline }

    /// Does what is due.
    public mutating func handleDeadlines(at now: Instant) {
        while let demand = progress.nextDemand(at: now) {
            // There is nothing to ask with but queries.
            if case .end(let error) = demand { end(error) }
        }
    }

    /// Puts all messages that wait into the stream, each into a TLS record of its own: dnsdist 1.7 takes one message out of a record, and
    /// waits for the network before it looks for another.
    private mutating func write() {
        guard progress.phase == .open, !waiting.isEmpty else { return }
        var bytes: [UInt8] = []
        swap(&bytes, &waiting)
        do throws(TLSError) {
            var offset = 0
            while offset < bytes.count {
                let end = offset + 2 + Int(bytes.span.octets.bigEndianUInt16(at: offset))
                try stream.write(bytes.span.octets.extracting(offset..<end))
                offset = end
            }
        } catch {
            return end(ConnectionError(error))
        }
        // Its room is used again, unless there was a burst.
        bytes.removeAll(keepingCapacity: bytes.capacity <= 65_536)
        swap(&bytes, &waiting)
    }

    private mutating func end(_ error: ConnectionError) {
        guard progress.phase != .over else { return }
        waiting = []
        partial = []
        stream.close()
        progress.end(error)
    }

    private mutating func readAll() throws(TLSError) {
        var scratch = takeBuffer(&plaintext)
        defer { swap(&scratch, &plaintext) }
        while progress.phase == .open {
            let result: TLSReadResult
            do {
                var span = scratch.mutableSpan
                var octets = span.mutableOctets
                result = try stream.read(into: &octets)
            }
            switch result {
            case .needsInput: return
            case .closed: end(.closedByServer)
            case .bytes(let count):
                progress.hear()
                do throws(FramingError) {
                    try cut(scratch.span.octets.extracting(..<count))
                } catch {
                    end(.framing(error))
                }
            }
        }
    }

    private mutating func cut(_ piece: RawSpan) throws(FramingError) {
        var offset = 0
        while true {
            switch try reader.next(piece, at: &offset, &partial) {
            case .messageInInput(let range): take([UInt8](copying: piece.extracting(range)))
            case .messageInBuffer(let count):
                take(Array(partial[..<count]))
                if partial.count > 4096 { partial = [] }
            case .needsBuffer(let count): partial += repeatElement(0, count: count - partial.count)
            case .needsInput: return
            }
        }
    }

    /// Takes a message, which the framing has seen to be as long as a header at least.
    private mutating func take(_ message: consuming [UInt8]) {
        let key = Int32(message[0]) << 8 | Int32(message[1])
        guard let entry = progress.exchanges.remove(key: key) else {
            unexpectedCount += 1
            return
        }
        guard message[2] & 0x80 != 0 else {
            progress.tell(.failed(entry.id, .invalidAnswer))
            return
        }
        message[0] = UInt8(truncatingIfNeeded: entry.queryID >> 8)
        message[1] = UInt8(truncatingIfNeeded: entry.queryID)
        progress.tell(.answer(ServerAnswer(exchange: entry.id, message: message, freshness: AnswerFreshness())))
    }
}

extension FramedMessageReader {
    /// Goes on with a piece of the stream; what is not whole is in `partial`.
    fileprivate mutating func next(
        _ piece: RawSpan, at offset: inout Int, _ partial: inout [UInt8]
    ) throws(FramingError) -> Event {
        var span = partial.mutableSpan
        var octets = span.mutableOctets
        return try next(piece, at: &offset, buffer: &octets)
    }
}

extension PipelinedConnection where Stream == TLSClient {
    /// What the next connection to the same server can go on with; nil when the server gave nothing.
    public var resumption: TLSSession? { stream.session }

    /// True when this connection went on with an earlier one's session.
    public var isResumed: Bool { stream.isResumed }
}
