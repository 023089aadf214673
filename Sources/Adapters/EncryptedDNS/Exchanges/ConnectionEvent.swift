public import DNSProxy

/// What happened on a connection. Each exchange ends with one ``answer(_:)`` or one ``failed(_:_:)``, unless it was cancelled.
public enum ConnectionEvent: Hashable, Sendable {
    /// The server is who it should be: queries are under way.
    case ready
    /// A server's answer.
    case answer(ServerAnswer)
    /// The server has been silent for so long that the connection may be dead. The exchange goes on until its deadline; whoever wants
    /// its answer in time asks the same on another connection, and takes what comes first.
    case overdue(ExchangeID)
    /// The exchange is over without an answer.
    case failed(ExchangeID, ConnectionError)
    /// The connection is over: no event comes behind this one. What is left to be written may be sent before its socket is closed.
    case closed(ConnectionError)
}

/// An answer as it came.
public struct ServerAnswer: Hashable, Sendable {
    /// Whose answer it is.
    public let exchange: ExchangeID
    /// The message, with the ID that the query had when it was handed over. Twelve bytes at least, and QR is set; the rest is not
    /// looked at.
    public let message: [UInt8]
    /// What HTTP says about its age (RFC 8484 §5.1); nothing without HTTP.
    public let freshness: AnswerFreshness
}
