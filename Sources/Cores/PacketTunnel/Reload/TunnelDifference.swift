internal import IPPacket
internal import WireGuard

/// How many peers a reload touched, and what else.
public struct ReloadSummary: Hashable, Sendable {
    /// Peers that are new.
    public var addedPeers = 0
    /// Peers that are gone.
    public var removedPeers = 0
    /// Peers of which something is different.
    public var changedPeers = 0
    /// True when the device's private key is another one.
    public var changedPrivateKey = false
    /// True when the sockets were opened anew.
    public var changedSockets = false
    /// True when the network settings are different.
    public var changedSettings = false

    /// Nothing changed.
    public init() {}

    /// True when nothing changed.
    public var isEmpty: Bool { self == ReloadSummary() }
}

/// What makes a WireGuard device of one configuration into one of another, and touches nothing that both have.
struct TunnelDifference: Sendable {
    private let old: TunnelConfiguration
    private let new: TunnelConfiguration
    private let oldPeers: [PublicKey: PeerConfiguration]
    private let newPeers: [PublicKey: PeerConfiguration]

    /// The difference between two configurations; nil for a device without a key or a peer.
    init(from old: TunnelConfiguration?, to new: TunnelConfiguration) {
        self.old = old ?? TunnelConfiguration()
        self.new = new
        oldPeers = Self.byKey(self.old.peers)
        newPeers = Self.byKey(new.peers)
    }

    private static func byKey(_ peers: [PeerConfiguration]) -> [PublicKey: PeerConfiguration] {
        Dictionary(peers.map { ($0.publicKey, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// The peers whose endpoint, as written, is new: only these need an address.
    var peersWithNewEndpoint: [PeerConfiguration] {
        new.peers.filter { $0.endpoint != nil && $0.endpoint != oldPeers[$0.publicKey]?.endpoint }
    }

    /// What a person is told of it.
    var summary: ReloadSummary {
        var summary = ReloadSummary()
        summary.changedPrivateKey = old.privateKey != new.privateKey
        summary.removedPeers = old.peers.count { newPeers[$0.publicKey] == nil }
        for peer in new.peers {
            guard let before = oldPeers[peer.publicKey] else {
                summary.addedPeers += 1
                continue
            }
            if before != peer { summary.changedPeers += 1 }
        }
        return summary
    }

    /// The changes in an order in which each can be made: keys, removals, peers, then the prefixes that change hands.
    ///
    /// - Parameter endpoints: The addresses of ``peersWithNewEndpoint``.
    func changes(endpoints: [PublicKey: Endpoint]) -> [DeviceChange] {
        var changes: [DeviceChange] = []
        if old.privateKey != new.privateKey { changes.append(.setPrivateKey(new.privateKey)) }
        for peer in old.peers where newPeers[peer.publicKey] == nil { changes.append(.removePeer(peer.publicKey)) }
        for peer in new.peers {
            let before = oldPeers[peer.publicKey]
            if before == nil { changes.append(.addPeer(peer.publicKey)) }
            if before?.presharedKey != peer.presharedKey {
                changes.append(.setPresharedKey(peer.presharedKey, of: peer.publicKey))
            }
            if let endpoint = endpoints[peer.publicKey] { changes.append(.setEndpoint(endpoint, of: peer.publicKey)) }
            if before?.persistentKeepaliveSeconds != peer.persistentKeepaliveSeconds {
                changes.append(.setPersistentKeepalive(peer.persistentKeepaliveSeconds, of: peer.publicKey))
            }
        }
        appendAllowedIPs(to: &changes)
        return changes
    }

    private func appendAllowedIPs(to changes: inout [DeviceChange]) {
        // Removed peers have lost their prefixes by then: these are nobody's, whoever else named them.
        let oldOwners = Self.owners(of: old.peers).filter { newPeers[$0.value] != nil }
        let newOwners = Self.owners(of: new.peers)
        for peer in old.peers {
            for prefix in peer.allowedIPs where oldOwners[prefix] == peer.publicKey && newOwners[prefix] == nil {
                changes.append(.removeAllowedIP(prefix, of: peer.publicKey))
            }
        }
        for peer in new.peers {
            for prefix in peer.allowedIPs where newOwners[prefix] == peer.publicKey {
                if oldOwners[prefix] != peer.publicKey {
                    changes.append(.addAllowedIP(prefix, for: peer.publicKey))
                }
            }
        }
    }

    /// Whose a prefix is: the last peer's that names it.
    private static func owners(of peers: [PeerConfiguration]) -> [IPPrefix: PublicKey] {
        var owners: [IPPrefix: PublicKey] = [:]
        for peer in peers {
            for prefix in peer.allowedIPs { owners[prefix] = peer.publicKey }
        }
        return owners
    }
}
