internal import ByteAccess
internal import DNSMessage
public import DNSProxy
public import Provider
public import SecureStream

/// DNS over HTTPS: RFC 8484, by HTTP/2. The context offers the protocol `h2`.
public typealias DoHConnection = HTTPConnection<TLSClient>

/// A connection to an HTTP/2 server on which each query is a stream of its own.
///
/// It has no socket and no clock. Bytes from the socket go into ``receive(_:at:)``; afterwards, and after every other call,
/// ``nextEvent()`` says what happened and ``nextOutgoing(into:)`` has bytes for the socket. Queries that come before the server has
/// proved who it is wait here, and are not written anywhere when it does not. Until its SETTINGS say how many streams it allows, there
/// is one (RFC 9113 §5.1.2).
///
/// Queries have the ID 0 on the wire, for HTTP's caches (RFC 8484 §4.1); an answer with any other ID is none.
public struct HTTPConnection<Stream: ByteStream & ~Copyable>: ~Copyable, DNSConnection {
    private var stream: Stream
    private var session: HTTPSession
    private let target: DoHTarget
    private var progress: ConnectionProgress
    /// When the first query was sent that the session has not put into frames yet; nil when there is none.
    private var unwritten: Instant?
    /// Room for frames on their way into the stream.
    private var frames: [UInt8] = []
    /// Room for what the server says.
    private var plaintext: [UInt8] = []

    /// A connection over a stream that has just been begun.
    public init(
        _ stream: consuming Stream, target: DoHTarget, limits: ConnectionLimits = ConnectionLimits(), at now: Instant
    ) throws(ConnectionError) {
        session = try HTTPSession(limits, target)
        self.stream = stream
        self.target = target
        progress = ConnectionProgress(limits, at: now)
        if self.stream.state == .established { becomeOpen(at: now) }
    }

    /// The next thing that happened; nil when the owner has been told everything.
    public mutating func nextEvent() -> ConnectionEvent? { progress.nextEvent() }

    /// How many exchanges are under way.
    public var exchangeCount: Int { progress.exchanges.count }

    /// True when the connection is over.
    public var isOver: Bool { progress.phase == .over }

    /// The most exchanges that can be under way: the limit of ours, or that of the server when it is less.
    public var exchangeLimit: Int { min(progress.limits.exchangeCount, session.streamLimit ?? .max) }

    /// True when another query can be sent. Not while the server is suspected to be gone, and never after its GOAWAY.
    public var canTakeMore: Bool {
        progress.phase != .over && !progress.isSuspect && session.takesRequests
            && progress.exchanges.count < exchangeLimit && stream.outgoingCount < progress.limits.outgoingByteCount
    }

    /// True when nothing but what is under way keeps the connection from taking another query.
    public var isBusy: Bool {
        progress.phase != .over && !progress.isSuspect && session.takesRequests && !canTakeMore
    }

    /// How many bytes there are for the socket; 1 when queries are not in frames yet, and nothing else is there.
    public var outgoingCount: Int {
        let count = stream.outgoingCount
        return count == 0 && unwritten != nil && progress.phase == .open ? 1 : count
    }

    /// Moves bytes for the socket to the start of `output`; returns how many, 0 when there are none. The queries that were sent since
    /// the last call go together.
    public mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int {
        if let unwritten { pump(at: unwritten) }
        return stream.nextOutgoing(into: &output)
    }

    /// Sends a query, padded when the stream is encrypted.
    ///
    /// - Parameter deadline: When nobody waits for the answer any more.
    public mutating func send(
        _ query: RawSpan, exchange: ExchangeID, deadline: Instant, at now: Instant
    ) throws(SendError) {
        guard progress.phase != .over, session.takesRequests else { throw .closed }
        guard DNSHeader.byteCount...progress.limits.queryByteCount ~= query.byteCount else { throw .invalidQuery }
        guard !progress.exchanges.contains(exchange) else { throw .repeatedExchange }
        guard progress.exchanges.count < exchangeLimit, stream.outgoingCount < progress.limits.outgoingByteCount else {
            throw .full
        }
        var message = [UInt8](copying: query)
        if Stream.isEncrypted { QueryPadding.pad(&message) }
        (message[0], message[1]) = (0, 0)
        let key: Int32
        do throws(ConnectionError) {
            key = try session.submit(message, queryID: query.bigEndianUInt16(at: 0), to: target)
        } catch {
            throw .closed
        }
        progress.exchanges.add(
            exchange, key: key, queryID: query.bigEndianUInt16(at: 0), deadline: deadline,
            patience: progress.limits.patience, at: now)
        progress.noteIdleness(at: now)
        if unwritten == nil { unwritten = now }
    }

    /// Nobody waits for this exchange any more. It ends without an event.
    public mutating func cancel(_ exchange: ExchangeID, at now: Instant) {
        guard let entry = progress.exchanges.remove(exchange) else { return }
        session.cancel(entry.key)
        pump(at: now)
    }

    /// What the next connection to the same server can go on with; nil when the server gave nothing, or there is no TLS.
    public mutating func takeResumption() -> TLSSession? { stream.makeSession() }

    /// Takes bytes from the socket.
    public mutating func receive(_ bytes: RawSpan, at now: Instant) {
        guard progress.phase != .over, !bytes.isEmpty else { return }
        do throws(TLSError) {
            try stream.receive(bytes)
        } catch {
            end(ConnectionError(error))
            return
        }
        if stream.state == .established, progress.phase == .handshaking {
            // Without an agreement the server would speak HTTP/1.1.
            guard !Stream.isEncrypted || stream.negotiatedProtocol == "h2" else {
                end(.noHTTP2)
                return
            }
            becomeOpen(at: now)
        }
        readAll(at: now)
        pump(at: now)
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
            switch demand {
            case .probe: session.ping()
            case .forget(let key): session.cancel(key)
            case .end(let error): end(error)
            }
        }
        pump(at: now)
    }

    private mutating func becomeOpen(at now: Instant) {
        progress.becomeOpen(at: now)
        pump(at: now)
    }

    private mutating func readAll(at now: Instant) {
        var scratch = takeBuffer(&plaintext)
        defer { swap(&scratch, &plaintext) }
        while progress.phase == .open {
            let result: TLSReadResult
            do throws(TLSError) {
                var span = scratch.mutableSpan
                var octets = span.mutableOctets
                result = try stream.read(into: &octets)
            } catch {
                return end(ConnectionError(error))
            }
            switch result {
            case .needsInput: return
            case .closed: return end(.closedByServer)
            case .bytes(let count):
                progress.hear()
                do throws(ConnectionError) {
                    try session.receive(scratch.span.octets.extracting(..<count))
                    takeOutcomes()
                } catch {
                    takeOutcomes()
                    return end(error)
                }
            }
        }
    }

    /// Writes what the session has to say, and ends the connection when there is nothing more to it.
    private mutating func pump(at now: Instant) {
        guard progress.phase == .open else { return }
        unwritten = nil
        do throws(ConnectionError) {
            try write()
        } catch {
            return end(error)
        }
        takeOutcomes()
        // A server that has answers to its PINGs written and reads none of them.
        guard stream.outgoingCount <= 4 * progress.limits.outgoingByteCount else { return end(HTTPSession.flooded) }
        progress.noteIdleness(at: now)
        if session.streams.isGoingAway, progress.exchanges.isEmpty { return end(.closedByServer) }
        // nghttp2 has told the server in a GOAWAY what was wrong.
        if session.isOver { end(.http2(Int32(1))) }
    }

    private mutating func write() throws(ConnectionError) {
        var bytes: [UInt8] = []
        swap(&bytes, &frames)
        bytes.removeAll(keepingCapacity: bytes.capacity <= 65_536)
        try session.takeOutgoing(into: &bytes)
        do throws(TLSError) {
            if !bytes.isEmpty { try stream.write(bytes.span.octets) }
        } catch {
            throw ConnectionError(error)
        }
        swap(&bytes, &frames)
    }

    private mutating func end(_ error: ConnectionError) {
        guard progress.phase != .over else { return }
        if progress.phase == .open {
            session.goAway()
            try? write()
        }
        stream.close()
        progress.end(error)
    }

    private mutating func takeOutcomes() {
        while let (key, outcome) = session.streams.nextOutcome() {
            guard let entry = progress.exchanges.remove(key: key) else { continue }
            switch outcome {
            case .success(let response):
                progress.tell(
                    .answer(
                        ServerAnswer(
                            exchange: entry.id, message: response.message, freshness: response.freshness)))
            case .failure(let error): progress.tell(.failed(entry.id, error))
            }
        }
    }
}

extension HTTPConnection where Stream == TLSClient {
    /// What the next connection to the same server can go on with; nil when the server gave nothing.
    public var resumption: TLSSession? { stream.session }

    /// True when this connection went on with an earlier one's session.
    public var isResumed: Bool { stream.isResumed }
}
