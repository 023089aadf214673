internal import Provider
internal import SecureStream

/// What is spoken behind TLS with clients of one kind, and the certificate that they are shown. A reload makes new ones; connections go on
/// with that which they began with.
final class SecureService {
    /// What is spoken.
    enum Kind: Hashable, Sendable, CaseIterable {
        /// DNS, by TLS alone (RFC 7858).
        case tls
        /// DNS by HTTPS (RFC 8484).
        case https

        /// The protocols for ALPN: the only one there is for each (RFC 7858 erratum, RFC 9113 §3.2).
        var protocols: [String] { self == .tls ? ["dot"] : ["h2"] }
    }

    /// How long tickets are made with the same keys: who steals them can read what was resumed with TLS 1.2 meanwhile (RFC 9325 §4.4).
    private static let ticketKeyLife = Interval.seconds(43_200)

    /// What is spoken.
    let kind: Kind
    /// Where HTTPS clients find it.
    let path: String
    private let context: TLSServerContext
    private var ticketKeysUntil: Instant?

    /// A service with a certificate.
    init(_ kind: Kind, _ context: TLSServerContext, path: String) {
        self.kind = kind
        self.context = context
        self.path = path
    }

    /// The begin of a connection.
    func makeChannel(at now: Instant) throws(TLSError) -> SecureChannel {
        if let until = ticketKeysUntil {
            if until <= now {
                context.renewTicketKeys()
                ticketKeysUntil = now + Self.ticketKeyLife
            }
        } else {
            ticketKeysUntil = now + Self.ticketKeyLife
        }
        return SecureChannel(self, try TLSServer(context, answersClose: false))
    }
}
