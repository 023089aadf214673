internal import EncryptedDNS
internal import IPPacket
internal import SecureStream

/// How the connections to a server are doing.
struct ServerStatus: Equatable, Sendable {
    /// Where the addresses of a server are from.
    enum AddressSource: String, Sendable {
        /// The configuration has them, or the URL.
        case configuration
        /// A resolver of `dns.bootstrap` had them.
        case bootstrap
    }

    /// What the configuration calls the server.
    var name: String
    /// How many connections are open.
    var openConnectionCount: Int
    /// Where the server is, in the order to try: private.
    var addresses: [IPAddress]
    /// Where that is from.
    var addressSource: AddressSource
    /// How often no resolver had an address.
    var failedResolutionCount: Int
    /// What is wrong with its certificate; nil when nothing is, as far as is known.
    var trustProblem: CertificateProblem?
    /// Why the last connection that came to nothing did, or the last datagram.
    var lastProblem: ServerProblem?
}

extension ServerExchanges {
    /// How the connections to each server are doing, in the order of the configuration.
    var status: [ServerStatus] {
        upstreams.map { upstream in
            ServerStatus(
                name: upstream.name, openConnectionCount: upstream.sockets.count(where: \.isReady),
                addresses: upstream.addresses,
                addressSource: upstream.bootstrapName == nil ? .configuration : .bootstrap,
                failedResolutionCount: upstream.failedResolutionCount, trustProblem: upstream.trustProblem,
                lastProblem: upstream.lastProblem)
        }
    }
}

extension ServerProblem {
    /// True when the connection ended as connections do when they are not used, or when the network is another one.
    var isNormalEnd: Bool {
        switch self {
        case .connection(.idle), .connection(.abandoned): true
        default: false
        }
    }

    /// True when the server was found dead, or did not keep to the protocol.
    var isFault: Bool {
        switch self {
        case .system, .connectTimedOut: true
        case .connection(.idle), .connection(.abandoned), .connection(.closedByServer): false
        case .connection: true
        }
    }

    /// The reason in words, without names and addresses.
    var text: String {
        switch self {
        case .system(let error): error.description
        case .connectTimedOut: "no connection came about in its time"
        case .connection(let error): error.text
        }
    }
}

extension ConnectionError {
    /// The reason in words, without names and addresses.
    var text: String {
        switch self {
        case .untrusted(let problem): problem.text
        case .tls(.protocolFailure(let reason)): "TLS failed (reason \(reason))"
        case .tls: "TLS failed"
        case .noHTTP2: "the server does not speak HTTP/2"
        case .closedByServer: "the server ended the connection"
        case .timedOut: "the server took too long"
        case .silent: "the server says nothing any more"
        case .framing: "the server's answers cannot be told apart"
        case .http2(let code): "HTTP/2 failed (code \(code))"
        case .refusedStream: "the server refused the request"
        case .streamReset(let code): "the server ended the request (code \(code))"
        case .httpStatus(let status): "HTTP status \(status)"
        case .unexpectedContentType: "the server's answer is no DNS message"
        case .headerTooLong: "the header of the server's answer is too long"
        case .bodyTooLong: "the server's answer is too long"
        case .invalidAnswer: "the server's answer makes no sense"
        case .idle: "nobody used the connection"
        case .abandoned: "the connection was given up"
        }
    }
}

extension CertificateProblem {
    /// What is wrong, in words.
    var text: String {
        switch self {
        case .missing: "it has no certificate"
        case .expired: "its certificate has expired"
        case .notYetValid: "its certificate is not valid yet"
        case .selfSigned: "its certificate is vouched for by itself alone"
        case .unknownAuthority: "no authority that is trusted vouches for its certificate"
        case .wrongName: "its certificate is for another name"
        case .wrongAddress: "its certificate is for another address"
        case .pinMismatch: "none of its keys is pinned"
        case .weak: "its certificates are too weak"
        case .wrongPurpose: "its certificate is not for servers"
        case .other(let code): "its certificate was not accepted (code \(code))"
        }
    }
}
