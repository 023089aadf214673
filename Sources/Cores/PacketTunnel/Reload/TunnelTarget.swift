internal import IPPacket
internal import Provider
internal import WireGuard

/// A tunnel as it is to be, checked.
struct TunnelTarget: Equatable, Sendable {
    /// What it was made from.
    let configuration: TunnelConfiguration
    /// What wins over the configuration.
    let overrides: DeviceOverrides
    /// The settings that follow from both.
    let settings: PacketTunnelNetworkSettings

    /// Checks a request.
    init(_ request: PacketTunnelProvider.Request) throws(InvalidTunnelConfiguration) {
        configuration = request.configuration
        overrides = request.overrides
        settings = PacketTunnelNetworkSettings(configuration, overrides: overrides)
        var numbers: [PublicKey: Int] = [:]
        for (number, peer) in configuration.peers.enumerated() {
            if let first = numbers.updateValue(number, forKey: peer.publicKey) {
                throw .duplicatePeer(first: first, second: number)
            }
        }
        guard let mtu = settings.mtu else { return }
        guard (68...65_535).contains(mtu) else { throw .invalidMTU(mtu) }
        if mtu < 1280, settings.addresses.contains(where: { $0.address.version == .v6 }) {
            throw .mtuTooSmallForIPv6(mtu)
        }
    }

    /// What the sockets are opened with.
    var socketOptions: PacketTunnelProvider.SocketOptions {
        PacketTunnelProvider.SocketOptions(port: configuration.listenPort, firewallMark: configuration.firewallMark)
    }
}
