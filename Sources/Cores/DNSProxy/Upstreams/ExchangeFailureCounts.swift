/// How many exchanges with a server came to nothing, by reason.
public struct ExchangeFailureCounts: Equatable, Sendable {
    /// It could not be reached.
    public var unreachable: UInt64 = 0
    /// The connection ended too early.
    public var connectionClosed: UInt64 = 0
    /// Nothing came in time.
    public var timedOut: UInt64 = 0
    /// It could not prove who it is.
    public var untrusted: UInt64 = 0
    /// Its status in HTTP was none of success.
    public var httpStatus: UInt64 = 0
    /// What it sent was no answer.
    public var invalidAnswer: UInt64 = 0
    /// Nobody knew its address.
    public var noAddress: UInt64 = 0
    /// There was no room for the exchange.
    public var overloaded: UInt64 = 0

    /// None yet.
    public init() {}

    mutating func note(_ failure: ExchangeFailure) {
        switch failure {
        case .unreachable: unreachable += 1
        case .connectionClosed: connectionClosed += 1
        case .timedOut: timedOut += 1
        case .untrusted: untrusted += 1
        case .httpStatus: httpStatus += 1
        case .invalidAnswer: invalidAnswer += 1
        case .noAddress: noAddress += 1
        case .overloaded: overloaded += 1
        }
    }
}
