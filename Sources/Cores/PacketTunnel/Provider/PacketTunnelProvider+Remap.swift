internal import IPPacket
internal import Provider
internal import WireGuard

/// An address that is being translated for a network that has only IPv6.
struct Remap: Sendable {
    let id: PacketTunnelProvider.OperationID
    let deadline: Instant
    /// The IPv4 address.
    let address: IPAddress
    /// Whose it is.
    var peers: [PublicKey]
    /// Which of them are to learn where we are once they can be reached.
    var greeted: [PublicKey] = []
}

extension PacketTunnelProvider {
    /// Lets peers be reached over `path`: by their own address where it can, and else by the one that the network has for it.
    ///
    /// Only numbers are translated. A name is not looked up again: it may lead somewhere else by now, and the peer lives where
    /// it is.
    ///
    /// - Parameter greeted: The peers that are to learn where we are.
    /// - Returns: Those of them that can be reached now; the others are told when they can.
    @discardableResult
    mutating func remap(
        _ keys: [PublicKey], over path: NetworkPath, greeting greeted: [PublicKey] = [], at now: Instant
    ) -> [PublicKey] {
        let concerned = Set(keys)
        for index in remaps.indices {
            remaps[index].peers.removeAll { concerned.contains($0) }
            remaps[index].greeted.removeAll { concerned.contains($0) }
        }
        remaps.removeAll { $0.peers.isEmpty }
        var changes: [DeviceChange] = []
        var wanted: [IPAddress: Int] = [:]
        for key in keys {
            guard let peer = peers[key], let base = peer.base else { continue }
            if base.address.version == .v4, !path.supports(.v4), path.supports(.v6) {
                if let index = wanted[base.address] {
                    remaps[index].peers.append(key)
                    continue
                }
                let id = nextOperation()
                wanted[base.address] = remaps.count
                remaps.append(
                    Remap(id: id, deadline: now + timings.remap, address: base.address, peers: [key]))
                emit(.remap(base.address, id))
            } else if peer.current != base {
                peers.setEndpoint(base, current: base, of: key)
                changes.append(.setEndpoint(base, of: key))
            }
        }
        if !changes.isEmpty { emit(.configure(changes)) }
        var waiting: Set<PublicKey> = []
        for index in remaps.indices {
            let own = Set(remaps[index].peers)
            let new = greeted.filter { own.contains($0) && !remaps[index].greeted.contains($0) }
            remaps[index].greeted += new
            waiting.formUnion(own)
        }
        return greeted.filter { !waiting.contains($0) }
    }

    /// The address that a network has for another one is known, or there is none.
    mutating func remapped(_ id: OperationID, _ address: IPAddress?, at now: Instant) {
        guard let index = remaps.firstIndex(where: { $0.id == id }) else { return }
        finish(remaps.remove(at: index), address, at: now)
    }

    mutating func expireRemaps(at now: Instant) {
        let due = remaps.filter { $0.deadline <= now }
        remaps.removeAll { $0.deadline <= now }
        for remap in due { finish(remap, nil, at: now) }
    }

    private mutating func finish(_ remap: Remap, _ address: IPAddress?, at now: Instant) {
        if address == nil { log(.error, "the network has no address for \(hashed: remap.address)") }
        var changes: [DeviceChange] = []
        for key in remap.peers {
            // A peer that was heard from elsewhere meanwhile is there.
            guard let peer = peers[key], let base = peer.base, base.address == remap.address else { continue }
            let current = Endpoint(address: address ?? base.address, port: base.port)
            guard current != peer.current else { continue }
            peers.setEndpoint(base, current: current, of: key)
            changes.append(.setEndpoint(current, of: key))
        }
        if !changes.isEmpty { emit(.configure(changes)) }
        if !remap.greeted.isEmpty { emit(.sendKeepalives(remap.greeted)) }
    }
}
