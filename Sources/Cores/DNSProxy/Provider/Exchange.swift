public import Provider

/// Names an exchange with a server until it is over. No number is used twice.
public struct ExchangeID: Hashable, Sendable {
    /// The number.
    public var rawValue: UInt64

    /// The exchange with a number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// A query to be put to a server.
public struct Exchange: Hashable, Sendable {
    /// Its name.
    public let id: ExchangeID
    /// The server.
    public let upstream: UpstreamID
    /// How to ask: not always the server's own transport, as when an answer did not fit into a datagram.
    public let transport: ExchangeTransport
    /// True when no connection will do that there is already.
    public let needsFreshConnection: Bool
    /// When nobody waits for the answer any more, whatever else the connection is used for.
    public let deadline: Instant
    /// How long the server may take before what it is asked by is doubted: a connection on which nothing else came meanwhile is best
    /// used no more.
    public var patience = Interval.seconds(1)

    /// An exchange of a host's own.
    public init(
        id: ExchangeID, upstream: UpstreamID, transport: ExchangeTransport, needsFreshConnection: Bool = false,
        deadline: Instant
    ) {
        self.id = id
        self.upstream = upstream
        self.transport = transport
        self.needsFreshConnection = needsFreshConnection
        self.deadline = deadline
    }
}

/// Randomness for a query by a transport that others can write into.
public struct QueryEntropy: Sendable {
    /// The ID (RFC 5452 §9.2).
    public var id: UInt16
    /// A bit for each letter.
    public var letters: InlineArray<4, UInt64>

    /// Bits that nobody can foresee.
    public init(id: UInt16, letters: InlineArray<4, UInt64>) {
        self.id = id
        self.letters = letters
    }
}

/// What HTTP says about an answer's age (RFC 8484 §5.1).
public struct AnswerFreshness: Hashable, Sendable {
    /// How many seconds it has been kept elsewhere.
    public var age: UInt32
    /// For how many seconds more it may be kept; nil when its TTLs alone say so.
    public var lifetime: UInt32?

    /// An age, and a limit where there is one.
    public init(age: UInt32 = 0, lifetime: UInt32? = nil) {
        self.age = age
        self.lifetime = lifetime
    }
}

/// What the host does with an exchange that something came for.
public enum ExchangeDisposition: Hashable, Sendable {
    /// It is over.
    case finished
    /// What came is not the answer: the exchange goes on as if nothing had come.
    case keepWaiting
}
