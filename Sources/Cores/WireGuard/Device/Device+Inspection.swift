import ByteAccess
public import IPPacket
public import Provider

/// What a device knows of one peer, for who shows or saves it.
public struct PeerSnapshot: Equatable, Sendable {
    /// The peer's name.
    public var publicKey: PublicKey
    /// Where it was heard from last, or was configured to be; nil as long as nobody knows.
    public var endpoint: Endpoint?
    /// Which inner addresses are the peer's.
    public var allowedIPs: [IPPrefix]
    /// How often something is sent at least, in seconds; nil for never.
    public var persistentKeepaliveSeconds: UInt16?
    /// When the last handshake ended, by the wall clock.
    public var lastHandshake: WallClockTime?
    /// Bytes of whole messages received from the peer.
    public var receivedBytes: UInt64
    /// Bytes of whole messages sent to the peer.
    public var sentBytes: UInt64
}

extension Device {
    /// What the device knows of a peer; nil when it has none of that key.
    public func snapshot(of key: PublicKey) -> PeerSnapshot? {
        peerIndex(of: key).map { snapshot(of: peer($0)) }
    }

    /// What the device knows of its peers, in the order in which they were added.
    public var snapshots: [PeerSnapshot] {
        var snapshots: [PeerSnapshot] = []
        var next = firstPeer
        while let index = next {
            let peer = peer(index)
            snapshots.append(snapshot(of: peer))
            next = peer.nextPeer
        }
        return snapshots
    }

    /// A copy of the private key; nil when there is none.
    public var privateKeyCopy: SecretMemory? {
        switch identity {
        case .some(let identity): SecretMemory(copying: identity.privateKey.bytes)
        case .none: nil
        }
    }

    /// A copy of the key that is shared with a peer; nil without such a peer, and without a key.
    public func presharedKeyCopy(of key: PublicKey) -> SecretMemory? {
        guard let index = peerIndex(of: key) else { return nil }
        return Self.copyUnlessZero(peer(index).presharedKey)
    }

    private static func copyUnlessZero(_ key: borrowing SecretMemory) -> SecretMemory? {
        let bytes = key.bytes
        var bits: UInt8 = 0
        for offset in bytes.byteOffsets { bits |= bytes.uint8(at: offset) }
        return bits == 0 ? nil : SecretMemory(copying: bytes)
    }

    private func snapshot(of peer: Peer) -> PeerSnapshot {
        var prefixes: [IPPrefix] = []
        var next = allowedIPs.firstEntry(of: peer.index)
        while let entry = next {
            prefixes.append(IPPrefix(address: entry.address, length: entry.prefixLength))
            next = allowedIPs.entry(after: entry)
        }
        let seconds = peer.timers.persistentKeepaliveInterval.map { $0.nanoseconds / 1_000_000_000 } ?? 0
        return PeerSnapshot(
            publicKey: peer.publicKey, endpoint: peer.path?.remote, allowedIPs: prefixes,
            persistentKeepaliveSeconds: seconds == 0 ? nil : UInt16(clamping: seconds),
            lastHandshake: peer.lastHandshake, receivedBytes: peer.receivedBytes, sentBytes: peer.sentBytes)
    }
}
