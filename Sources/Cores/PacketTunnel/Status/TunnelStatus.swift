public import IPPacket
public import Provider
public import WireGuard

/// How a packet tunnel is. The provider fills in what makes a state; what is counted, the host adds when it shows it.
public struct TunnelStatus: Equatable, Sendable {
    /// The revision of the state: a number that changes with it, and not with what is counted.
    public var revision: UInt64
    /// How far the tunnel is.
    public var status: VPNStatus
    /// What it waits for, or why it is where it is; nil when there is nothing to say.
    public var reason: StatusReason?
    /// True while the machine sleeps.
    public var isAsleep: Bool
    /// How short memory is.
    public var memoryLevel: MemoryLevel
    /// The name of the interface, where the daemon's configuration sets it; the host puts in the one that it has.
    public var interfaceName: String?
    /// The network settings that are in place.
    public var settings: PacketTunnelNetworkSettings?
    /// The UDP port that the sockets are bound to: filled in by the host.
    public var listenPort: UInt16?
    /// The peers, in the order of the configuration.
    public var peers: [PeerStatus]
}

/// What a tunnel waits for, or why it is where it is.
public enum StatusReason: Equatable, Sendable {
    /// Names of peers are being looked up.
    case resolvingEndpoints
    /// The sockets are being opened.
    case openingSockets
    /// The network settings are being put in place, or taken back.
    case applyingSettings
    /// There is no way to the network. What goes into the tunnel is dropped.
    case pathLost
    /// The last start failed, or the tunnel ended by itself.
    case failed(TunnelFailure)
    /// The tunnel was stopped.
    case stopped(ProviderStopReason)
}

extension StatusReason: PubliclyLoggable, CustomStringConvertible {
    /// The reason in words.
    public var description: String {
        switch self {
        case .resolvingEndpoints: "looking up endpoints"
        case .openingSockets: "opening sockets"
        case .applyingSettings: "applying network settings"
        case .pathLost: "no path to the network"
        case .failed(let failure): failure.description
        case .stopped(let reason): reason.description
        }
    }
}

/// How a peer of a tunnel is.
public struct PeerStatus: Equatable, Sendable {
    /// How far the last handshake came.
    public enum Handshake: Hashable, Sendable {
        /// There was none since the tunnel came up.
        case none
        /// It ended with keys.
        case completed
        /// Nobody answered for 90 seconds.
        case givenUp
    }

    /// The peer's name.
    public var publicKey: PublicKey
    /// Where the peer is reached as the configuration says it; nil when it has to call.
    public var endpointName: EndpointName?
    /// Where it is reached; nil as long as nobody knows.
    public var endpoint: Endpoint?
    /// The peer's inner addresses.
    public var allowedIPs: [IPPrefix]
    /// How often something is sent at least, in seconds; nil for never.
    public var persistentKeepaliveSeconds: UInt16?
    /// How far the last handshake came.
    public var handshake: Handshake
    /// When the last handshake ended, by the wall clock: filled in by the host.
    public var lastHandshake: WallClockTime?
    /// Bytes of whole messages received from the peer: filled in by the host.
    public var receivedBytes: UInt64 = 0
    /// Bytes of whole messages sent to the peer: filled in by the host.
    public var sentBytes: UInt64 = 0
}
