public import Provider

/// How long a packet tunnel waits for what.
public struct TunnelTimings: Equatable, Sendable {
    /// How long names may take to be looked up. A resolver that is out of reach must not hold a start for the half minute that
    /// resolvers take by themselves.
    public var resolution = Interval.seconds(10)
    /// How long the system may take for network settings before they count as late.
    public var settings = Interval.seconds(5)
    /// How long the host may take to open sockets.
    public var sockets = Interval.seconds(5)
    /// How long the host may take to find an address's equivalent in a network that has only IPv6.
    public var remap = Interval.seconds(5)
    /// How long a path may be lost before the tunnel is suspended: changing between networks takes some seconds.
    public var pathGrace = Interval.seconds(12)
    /// How old a peer's last handshake may be for a session to be in use (paper, section 6.1: Reject-After-Time).
    public var sessionLife = Interval.seconds(180)
    /// How old a session may be after a sleep without a new handshake (paper, section 6.1: Rekey-After-Time).
    public var staleAfter = Interval.seconds(120)

    /// The times as they are in use.
    public init() {}
}
