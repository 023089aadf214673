public import DNSProxy
public import Provider
public import SecureStream

/// What connections to servers have in common for the host that moves their bytes, whatever is spoken on them.
public protocol DNSConnection: ~Copyable {
    /// The next thing that happened; nil when the owner has been told everything.
    mutating func nextEvent() -> ConnectionEvent?
    /// How many exchanges are under way.
    var exchangeCount: Int { get }
    /// True when another query can be sent.
    var canTakeMore: Bool { get }
    /// True when nothing but what is under way keeps the connection from taking another query.
    var isBusy: Bool { get }
    /// True when the connection is over.
    var isOver: Bool { get }
    /// How many bytes there are for the socket: 0 when there are none, and otherwise at least one. Queries that were sent since bytes
    /// were taken are not made into bytes yet.
    var outgoingCount: Int { get }
    /// Moves bytes for the socket to the start of `output`; returns how many, 0 when there are none. All queries since the last call
    /// come together. There may be events afterwards.
    mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int
    /// Sends a query, padded when the stream is encrypted.
    mutating func send(_ query: RawSpan, exchange: ExchangeID, deadline: Instant, at now: Instant) throws(SendError)
    /// Nobody waits for this exchange any more. It ends without an event.
    mutating func cancel(_ exchange: ExchangeID, at now: Instant)
    /// What the next connection to the same server can go on with; nil when the server gave nothing, or there is no TLS.
    mutating func takeResumption() -> TLSSession?
    /// Takes bytes from the socket.
    mutating func receive(_ bytes: RawSpan, at now: Instant)
    /// The socket has nothing more, or has failed.
    mutating func endOfStream()
    /// Ends the connection: what is under way fails with ``ConnectionError/abandoned``.
    mutating func abandon()
    /// When ``handleDeadlines(at:)`` is to be called; nil when there is no need to.
    var nextDeadline: Instant? { get }
    /// Does what is due.
    mutating func handleDeadlines(at now: Instant)
}

extension DNSConnection where Self: ~Copyable {
    /// All that happened since the last call.
    public mutating func takeEvents() -> [ConnectionEvent] {
        var all: [ConnectionEvent] = []
        while let event = nextEvent() { all.append(event) }
        return all
    }
}
