public import IPPacket
public import Provider
public import WireGuard

/// What a packet tunnel is to be: the device's own keys and numbers, its peers, and the settings of its interface.
public struct TunnelConfiguration: Equatable, Sendable {
    /// The device's private key; nil where it is set later. Without one nothing is sent.
    public var privateKey: SecretKey?
    /// The UDP port to listen on; 0 for any that is free.
    public var listenPort: UInt16 = 0
    /// The firewall mark of the UDP sockets as the configuration sets it; nil where it sets none.
    public var firewallMark: UInt32?
    /// The addresses of the interface.
    public var addresses: [InterfaceAddress] = []
    /// The largest packet in bytes; nil to derive it from the routes to the endpoints.
    public var mtu: Int?
    /// The resolvers that the tunnel brings, the preferred one first.
    public var dnsServers: [IPAddress] = []
    /// What is appended to names that are not whole.
    public var searchDomains: [String] = []
    /// The peers, in the order of the configuration.
    public var peers: [PeerConfiguration] = []

    /// A configuration without a key and without peers.
    public init() {}
}

/// What a peer is to be.
public struct PeerConfiguration: Equatable, Sendable {
    /// The key that names the peer.
    public var publicKey: PublicKey
    /// The symmetric key that both ends share besides; nil for none.
    public var presharedKey: SecretKey?
    /// Where the peer is reached first; nil when it has to call.
    public var endpoint: EndpointName?
    /// Which inner addresses are the peer's. A prefix that several peers have goes to the last of them.
    public var allowedIPs: [IPPrefix] = []
    /// How often something is sent at least, in seconds; nil for never.
    public var persistentKeepaliveSeconds: UInt16?

    /// A peer that is known by its key alone.
    public init(publicKey: PublicKey) {
        self.publicKey = publicKey
    }
}

/// The address that a peer is reached at, as it was written: a name has to be looked up.
public struct EndpointName: Hashable, Sendable {
    /// A host name, or an address as text (IPv6 without brackets, with `%` and the interface where it has a scope).
    public var host: String
    /// The UDP port.
    public var port: UInt16

    /// An endpoint at a name or address.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }
}
