internal import IPPacket
public import Provider
public import WireGuard

extension Device {
    /// Makes changes, in their order. Changes of a peer that the device does not have are left out: it may have the device's own
    /// key, and such a peer is never added.
    public mutating func apply(_ changes: [DeviceChange], at now: Instant) {
        // What waits for a peer's settings starts when it has all of them.
        var configured: [PublicKey] = []
        var startsKeepalives: Set<PublicKey> = []
        for change in changes {
            if let key = change.peer, configured.last != key { configured.append(key) }
            if apply(change, at: now), let key = change.peer { startsKeepalives.insert(key) }
        }
        var seen: Set<PublicKey> = []
        for key in configured where seen.insert(key).inserted {
            guard let peer = peerIndex(of: key) else { continue }
            peerConfigured(peer, startsKeepalives: startsKeepalives.contains(key))
        }
    }

    /// Sends an empty message to each of these peers, or starts a handshake where there is no session.
    public mutating func sendKeepalives(to keys: [PublicKey]) {
        for key in keys {
            if let peer = peerIndex(of: key) { peerConfigured(peer, startsKeepalives: true) }
        }
    }

    /// Starts a new handshake with each of these peers.
    public mutating func initiateHandshakes(with keys: [PublicKey]) {
        for key in keys {
            if let peer = peerIndex(of: key) { initiateHandshake(with: peer) }
        }
    }

    /// Makes one change. True when it turned persistent keepalives on.
    private mutating func apply(_ change: DeviceChange, at now: Instant) -> Bool {
        switch change {
        case .setPrivateKey(let key?): key.withBytes { setPrivateKey($0, at: now) }
        case .setPrivateKey(nil): removePrivateKey(at: now)
        case .addPeer(let key): _ = addPeer(key)
        case .removeAllPeers: removeAllPeers()
        case .setLink(let isUp): setLink(up: isUp, at: now)
        case .removePeer(let key): if let peer = peerIndex(of: key) { removePeer(peer) }
        case .setPresharedKey(let secret, let key):
            guard let peer = peerIndex(of: key) else { break }
            if let secret {
                secret.withBytes { setPresharedKey($0, of: peer) }
            } else {
                let none = SecretMemory(byteCount: SecretKey.byteCount)
                setPresharedKey(none.bytes, of: peer)
            }
        case .setEndpoint(let endpoint, let key):
            if let peer = peerIndex(of: key) { setEndpoint(endpoint, of: peer) }
        case .setPersistentKeepalive(let seconds, let key):
            guard let peer = peerIndex(of: key) else { break }
            return setPersistentKeepalive(seconds.map { .seconds(UInt64($0)) }, of: peer, at: now)
        case .addAllowedIP(let prefix, let key):
            if let peer = peerIndex(of: key) { addAllowedIP(prefix, for: peer) }
        case .removeAllowedIP(let prefix, let key):
            if let peer = peerIndex(of: key) { removeAllowedIP(prefix, of: peer) }
        }
        return false
    }
}

extension DeviceChange {
    /// The peer whose settings are changed; nil when it is not one that stays.
    var peer: PublicKey? {
        switch self {
        case .addPeer(let key), .setPresharedKey(_, let key), .setEndpoint(_, let key),
            .setPersistentKeepalive(_, let key), .addAllowedIP(_, let key), .removeAllowedIP(_, let key):
            key
        case .setPrivateKey, .removePeer, .removeAllPeers, .setLink: nil
        }
    }
}
