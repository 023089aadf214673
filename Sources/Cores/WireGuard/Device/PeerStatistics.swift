public import Provider

/// What an operator is shown of a peer while a device runs.
public struct PeerStatistics: Equatable, Sendable {
    /// Where the peer was heard from last, or was configured to be; nil when nobody knows.
    public var endpoint: Endpoint?
    /// When the last handshake ended, by the wall clock; nil when there was none.
    public var lastHandshake: WallClockTime?
    /// Bytes of whole messages received from the peer.
    public var receivedBytes: UInt64
    /// Bytes of whole messages sent to the peer.
    public var sentBytes: UInt64
}

extension Device {
    /// What an operator is shown of a peer, or nil when it was removed.
    public func statistics(of index: PeerIndex) -> PeerStatistics? {
        guard Int(index.rawValue) < peers.count, let peer = peers[Int(index.rawValue)] else { return nil }
        return PeerStatistics(
            endpoint: peer.path?.remote, lastHandshake: peer.lastHandshake, receivedBytes: peer.receivedBytes,
            sentBytes: peer.sentBytes)
    }

    /// Starts a new handshake with a peer, even when its session is good: the host has a reason to doubt it. Nothing happens
    /// while the link is down, and where a handshake message went out less than five seconds ago.
    public mutating func initiateHandshake(with index: PeerIndex) {
        guard isUp, Int(index.rawValue) < peers.count, let peer = peers[Int(index.rawValue)] else { return }
        schedule(.initiate, for: peer)
    }
}
