/// A server that is asked, as far as the core has to know it. Where it is, and who it has to prove to be, is the host's business.
public struct DNSUpstream: Hashable, Sendable {
    /// What the configuration calls the server; it is shown in logs.
    public var name: String
    /// How the server is asked.
    public var transport: ExchangeTransport
    /// True when the server's word that data is authentic is passed on (RFC 6840 §5.8).
    public var isTrustedForAuthenticData: Bool

    /// A server.
    public init(name: String, transport: ExchangeTransport, isTrustedForAuthenticData: Bool = false) {
        self.name = name
        self.transport = transport
        self.isTrustedForAuthenticData = isTrustedForAuthenticData
    }
}

/// A server by its place in ``DNSProxyConfiguration/upstreams``.
public struct UpstreamID: Hashable, Sendable, BitwiseCopyable {
    /// The place, counted from 0.
    public var index: Int

    /// The server at a place.
    public init(index: Int) {
        self.index = index
    }
}

/// How a query and its answer travel between the proxy and a server.
public enum ExchangeTransport: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    /// A datagram of its own, from a port of its own.
    case udp
    /// A TCP connection.
    case tcp
    /// TLS (RFC 7858).
    case tls
    /// HTTPS (RFC 8484).
    case https

    /// True for what nobody on the way can read.
    public var isEncrypted: Bool { self == .tls || self == .https }
}
