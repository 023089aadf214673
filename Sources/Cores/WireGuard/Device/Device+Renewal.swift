extension Device {
    /// Starts a new handshake with a peer, even when its session is good: the host has a reason to doubt it. Nothing happens
    /// while the link is down, and where a handshake message went out less than five seconds ago.
    public mutating func initiateHandshake(with index: PeerIndex) {
        guard isUp, Int(index.rawValue) < peers.count, let peer = peers[Int(index.rawValue)] else { return }
        schedule(.initiate, for: peer)
    }
}
