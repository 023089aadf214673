internal import DNSMessage
public import Provider

/// Why an exchange with a server came to nothing.
public enum ExchangeFailure: Error, Hashable, Sendable {
    /// A packet or a connection was refused, or there is no way to the server.
    case unreachable
    /// The connection ended before the answer was there, or the stream was refused.
    case connectionClosed
    /// No connection came about in its time.
    case timedOut
    /// The server could not prove who it is; nothing was asked.
    case untrusted
    /// The server's status in HTTP is none of success.
    case httpStatus(Int)
    /// The server did not keep to the transport's protocol, or sent what is no answer to the query.
    case invalidAnswer
    /// Nobody knows an address of the server.
    case noAddress
    /// The host has no room for another exchange.
    case overloaded
}

extension ExchangeFailure {
    /// True when a new connection may bring what an old one did not.
    var isWorthAFreshConnection: Bool {
        switch self {
        case .connectionClosed, .timedOut, .invalidAnswer: true
        case .unreachable, .untrusted, .httpStatus, .noAddress, .overloaded: false
        }
    }

    /// True when the failure says something about the server's health.
    var concernsHealth: Bool { self != .overloaded }

    /// What clients are told (RFC 8914 §4).
    var extendedErrorCode: ExtendedErrorCode {
        switch self {
        case .unreachable, .timedOut, .noAddress: .noReachableAuthority
        case .connectionClosed, .untrusted, .httpStatus: .networkError
        case .invalidAnswer: .invalidData
        case .overloaded: .notReady
        }
    }
}

extension ExchangeFailure: PubliclyLoggable, CustomStringConvertible {
    /// The reason in words.
    public var description: String {
        switch self {
        case .unreachable: "unreachable"
        case .connectionClosed: "connection closed"
        case .timedOut: "timed out"
        case .untrusted: "not trusted"
        case .httpStatus(let status): "HTTP status \(status)"
        case .invalidAnswer: "invalid answer"
        case .noAddress: "no address"
        case .overloaded: "too many exchanges"
        }
    }
}
