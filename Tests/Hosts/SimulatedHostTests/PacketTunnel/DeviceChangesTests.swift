import ByteAccess
import IPPacket
import OpenSSLCrypto
import PacketTunnel
import Provider
import SimulatedHost
import TestSupport
import Testing
import WireGuard

@Suite("Changes of a device")
struct DeviceChangesTests {
    /// A random configuration over a few keys, names that are numbers, and a few prefixes.
    private func configuration(_ generator: inout SeededGenerator, keys: [PublicKey]) -> TunnelConfiguration {
        var configuration = TunnelConfiguration()
        configuration.privateKey =
            [
                nil, SecretKey(SecretMemory(copying: [UInt8](repeating: 7, count: 32).span.octets)),
                SecretKey(SecretMemory(copying: [UInt8](repeating: 8, count: 32).span.octets)),
            ][Int.random(in: 0..<3, using: &generator)]
        for key in keys.shuffled(using: &generator) where Bool.random(using: &generator) {
            var peer = PeerConfiguration(publicKey: key)
            if Bool.random(using: &generator) {
                let secret = [UInt8](repeating: UInt8.random(in: 1...2, using: &generator), count: 32)
                peer.presharedKey = SecretKey(SecretMemory(copying: secret.span.octets))
            }
            peer.endpoint = EndpointName(
                host: "192.0.2.\(Int.random(in: 1...3, using: &generator))", port: 51_820)
            peer.persistentKeepaliveSeconds = [nil, 25, 60][Int.random(in: 0..<3, using: &generator)]
            for _ in 0..<Int.random(in: 0..<4, using: &generator) {
                peer.allowedIPs.append(
                    IPPrefix(
                        address: v4(10, UInt8.random(in: 0...2, using: &generator), 0, 0),
                        length: UInt8.random(in: 14...16, using: &generator)))
            }
            configuration.peers.append(peer)
        }
        return configuration
    }

    /// What a device says of itself by the cross-platform protocol: the device's lines, and each peer's, without order.
    private func listing(of tunnel: SimulatedTunnel<OpenSSLCryptography>) -> Set<Set<String>> {
        var bytes: [UInt8] = []
        var listing = ConfigurationListing()
        while listing.appendNext(of: tunnel.machine.device, to: &bytes, interfaceName: { _ in nil }) {}
        var stanzas: Set<Set<String>> = []
        var stanza: Set<String> = []
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            if line.hasPrefix("public_key=") {
                stanzas.insert(stanza)
                stanza = []
            }
            // Traffic is not configuration.
            if !line.hasPrefix("tx_bytes") && !line.hasPrefix("listen_port") { stanza.insert(String(line)) }
        }
        stanzas.insert(stanza)
        return stanzas
    }

    @Test("A reload from any configuration to any other leaves the device as a start with that one does")
    func reloadsEqualStarts() throws {
        var generator = SeededGenerator(seed: 1)
        let keys = (0..<5).map { _ in ProviderPair.publicKey(of: generator.bytes(32)) }
        for seed in 0..<60 as Range<UInt64> {
            let network = TestNetwork(seed: seed, makePrimitives: makePrimitives)
            let reloaded = SimulatedTunnel(
                PacketTunnelProvider(), on: network.addMachine(v4(192, 0, 2, 101)), of: network)
            for step in 0..<12 as Range<UInt64> {
                let configuration = configuration(&generator, keys: keys)
                let request = PacketTunnelProvider.Request(
                    id: .init(rawValue: step), configuration: configuration)
                reloaded.handle(step == 0 ? .start(request) : .reload(request))
                let fresh = SimulatedTunnel(
                    PacketTunnelProvider(), on: network.addMachine(v4(192, 0, 2, 102)), of: network)
                fresh.handle(.start(request))
                try network.run()
                #expect(reloaded.provider.status == .connected && fresh.provider.status == .connected)
                #expect(listing(of: reloaded) == listing(of: fresh), "seed \(seed), step \(step)")
                fresh.handle(.stop(.none))
                try network.run()
            }
        }
    }
}
