internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import WireGuard

// Where peers are, and the way to them.
extension RunDaemon {
    /// Where the peers are, as far as it is known.
    var endpointAddresses: [IPAddress] {
        provider.currentStatus.peers.compactMap(\.endpoint?.address)
    }

    /// The way to the network as it is now.
    func currentPath() -> NetworkPath {
        let index: UInt32
        switch interface {
        case .some(let interface): index = interface.index
        case .none: index = 0
        }
        return observer.path(to: endpointAddresses, mark: applied?.firewallMark ?? 0, own: index)
    }

    /// Reads which look-ups ended.
    mutating func readOutcomes() {
        for outcome in resolution.takeOutcomes() {
            let id = PacketTunnelProvider.OperationID(rawValue: outcome.id)
            if let address = remaps.removeValue(forKey: outcome.id) {
                let found = (try? outcome.result.get())?.map(\.address) ?? []
                tell(.remapped(id, NAT64Prefix.find(in: found)?.address(for: address)))
            } else {
                tell(.resolved(id, outcome.result))
            }
        }
    }

    /// Finds the prefix of the network by the name that everybody knows the IPv4 addresses of (RFC 7050).
    mutating func remap(_ address: IPAddress, _ id: PacketTunnelProvider.OperationID) {
        remaps[id.rawValue] = address
        resolution.start(
            EndpointName(host: NAT64Prefix.wellKnownName, port: 0), id: id.rawValue,
            deadline: HostClock.now() + .seconds(5))
    }
}
