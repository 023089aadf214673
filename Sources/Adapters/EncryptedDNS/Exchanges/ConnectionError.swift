public import DNSMessage
public import DNSProxy
public import SecureStream

/// Why an exchange or a connection ended.
public enum ConnectionError: Error, Hashable, Sendable {
    /// The server is not who it should be. No byte of a query has been sent.
    case untrusted(CertificateProblem)
    /// TLS failed otherwise.
    case tls(TLSError)
    /// The server does not speak HTTP/2. No byte of a query has been sent.
    case noHTTP2
    /// The other side ended the connection.
    case closedByServer
    /// An exchange had no answer when its deadline came, or a handshake took too long.
    case timedOut
    /// Nothing at all came since a query whose deadline has passed.
    case silent
    /// The stream cannot be cut into messages.
    case framing(FramingError)
    /// The server did not keep to HTTP/2, or had too much to say: the error code of RFC 9113 §7 or nghttp2's own, which is negative.
    case http2(Int32)
    /// The server did not take the stream up, by REFUSED_STREAM or GOAWAY (RFC 9113 §8.7).
    case refusedStream
    /// The stream was ended early with this code (RFC 9113 §7).
    case streamReset(UInt32)
    /// A status that is none of success (RFC 8484 §4.2.1).
    case httpStatus(Int)
    /// The answer's media type is missing or is none that was accepted.
    case unexpectedContentType
    /// The header fields of an answer are longer than is taken.
    case headerTooLong
    /// The body is longer than any message, or all that are unfinished are longer than ``ConnectionLimits/bufferedByteCount``.
    case bodyTooLong
    /// What came is shorter than a header, has another ID, or is no answer.
    case invalidAnswer
    /// Nobody used the connection for a while.
    case idle
    /// The caller ended the connection: the network is another one, or another address was faster.
    case abandoned
}

extension ConnectionError {
    /// True when the server has not answered and nothing speaks against asking the same at once on a fresh connection.
    public var isRetryable: Bool {
        switch self {
        case .closedByServer, .silent, .refusedStream, .idle, .abandoned, .tls(.truncated): true
        default: false
        }
    }

    /// What the core is told.
    public var exchangeFailure: ExchangeFailure {
        switch self {
        case .untrusted: .untrusted
        case .closedByServer, .silent, .refusedStream, .streamReset, .idle, .abandoned, .tls(.truncated):
            .connectionClosed
        case .timedOut: .timedOut
        case .httpStatus(let status): .httpStatus(status)
        case .tls, .noHTTP2, .framing, .http2, .unexpectedContentType, .headerTooLong, .bodyTooLong, .invalidAnswer:
            .invalidAnswer
        }
    }

    /// The failure of a stream.
    init(_ error: TLSError) {
        switch error {
        case .untrusted(let problem): self = .untrusted(problem)
        case .closed, .truncated: self = .closedByServer
        default: self = .tls(error)
        }
    }
}

/// Why a query was not taken.
public enum SendError: Error, Hashable, Sendable {
    /// The connection takes no more: it is over, or will be when what is under way has been answered.
    case closed
    /// There are as many exchanges as there may be, or too many bytes wait to be written.
    case full
    /// The query is not one, or is longer than ``ConnectionLimits/queryByteCount``.
    case invalidQuery
    /// There is an exchange of this name already.
    case repeatedExchange
}
