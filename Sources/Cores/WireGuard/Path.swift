public import IPPacket

/// Where a peer can be reached: an address and a UDP port.
public struct Endpoint: Hashable, Sendable {
    /// The address.
    public var address: IPAddress
    /// The UDP port in host order.
    public var port: UInt16
    /// The index of the interface that a link-local IPv6 address belongs to (RFC 4007); zero otherwise.
    public var scope: UInt32

    /// An endpoint.
    @inlinable
    public init(address: IPAddress, port: UInt16, scope: UInt32 = 0) {
        self.address = address
        self.port = port
        self.scope = scope
    }
}

/// The local end that a datagram came to: answers leave from it, so that a host with several addresses answers from the one
/// that was asked.
public struct LocalSource: Hashable, Sendable {
    /// The local address, of the same family as the remote one.
    public var address: IPAddress
    /// The index of the interface that the datagram came in on.
    public var interfaceIndex: UInt32

    /// A local end.
    @inlinable
    public init(address: IPAddress, interfaceIndex: UInt32) {
        self.address = address
        self.interfaceIndex = interfaceIndex
    }
}

/// Both ends of the way to a peer.
public struct Path: Hashable, Sendable {
    /// The peer's end.
    public var remote: Endpoint
    /// Our end, once a datagram from the peer has shown it; without it the kernel chooses.
    public var source: LocalSource?

    /// A path.
    @inlinable
    public init(remote: Endpoint, source: LocalSource? = nil) {
        self.remote = remote
        self.source = source
    }
}

/// What an outgoing datagram, or a train of them, is sent with.
public struct Transmission: Equatable, Sendable {
    /// The peer it goes to: what to name when a send fails. A cookie reply has none.
    public var peer: PeerIndex?
    /// Where it goes, and from where.
    public var path: Path
    /// The outer header's traffic class (DSCP and ECN): IPv4 TOS, IPv6 traffic class.
    public var trafficClass: UInt8

    /// Destination and header bits of a datagram.
    @inlinable
    public init(peer: PeerIndex?, path: Path, trafficClass: UInt8) {
        self.peer = peer
        self.path = path
        self.trafficClass = trafficClass
    }
}

/// Names a peer of a device for as long as the peer is configured. Numbers are used again after a removal.
public struct PeerIndex: Hashable, Sendable {
    /// The slot number.
    public var rawValue: UInt32

    /// The peer in slot `rawValue`.
    @inlinable
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }
}
