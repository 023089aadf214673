import ByteAccess
import IPPacket
import OpenSSLCrypto
import PacketTunnel
import Provider
import SimulatedHost
import TestSupport
import Testing
import WireGuard

/// Two machines, each with a packet tunnel provider: the left one calls `server.example`, which is the right one at 192.0.2.2.
/// Inside they are 10.9.0.1 and 10.9.0.2.
final class ProviderPair {
    let network: TestNetwork
    let left: SimulatedTunnel<OpenSSLCryptography>
    let right: SimulatedTunnel<OpenSSLCryptography>
    let leftKey: PublicKey
    let rightKey: PublicKey
    var generator: SeededGenerator
    /// Where the server's name leads to, with what delay; nil when nobody answers.
    var answer: (Interval, Result<[Endpoint], ResolutionFailure>)?
    /// How often the server's name was looked up.
    private(set) var lookups = 0

    private let leftConfiguration: TunnelConfiguration
    private let rightConfiguration: TunnelConfiguration
    private var requests: UInt64 = 0

    static let serverName = EndpointName(host: "server.example", port: 51_820)
    static let server = Endpoint(address: v4(192, 0, 2, 2), port: 51_820)
    static let wiFi = NetworkPath(interfaceIndex: 2, interfaceName: "wlan0", addresses: [v4(192, 0, 2, 1)])
    static let cellular = NetworkPath(
        interfaceIndex: 3, interfaceName: "wwan0", addresses: [v4(203, 0, 113, 77)], supportsIPv6: false)

    init(seed: UInt64, keepalive: UInt16? = nil, remembered: [EndpointName: Endpoint] = [:]) {
        generator = SeededGenerator(seed: seed)
        let network = TestNetwork(seed: generator.next(), makePrimitives: makePrimitives)
        self.network = network
        let machines = [v4(192, 0, 2, 1), v4(192, 0, 2, 2)].map { network.addMachine($0) }
        for machine in machines { machine.uplink.faults = LinkFaults(delay: .milliseconds(10)) }
        let secrets = [generator.bytes(32), generator.bytes(32)]
        let keys = secrets.map { Self.publicKey(of: $0) }
        (leftKey, rightKey) = (keys[0], keys[1])
        var server = PeerConfiguration(publicKey: keys[1])
        server.endpoint = Self.serverName
        server.allowedIPs = [IPPrefix(host: v4(10, 9, 0, 2))]
        server.persistentKeepaliveSeconds = keepalive
        var client = PeerConfiguration(publicKey: keys[0])
        client.allowedIPs = [IPPrefix(host: v4(10, 9, 0, 1))]
        leftConfiguration = Self.configuration(secrets[0], v4(10, 9, 0, 1), server)
        rightConfiguration = Self.configuration(secrets[1], v4(10, 9, 0, 2), client)
        answer = (.milliseconds(30), .success([Self.server]))
        left = SimulatedTunnel(
            PacketTunnelProvider(rememberedEndpoints: remembered), on: machines[0], of: network)
        right = SimulatedTunnel(PacketTunnelProvider(), on: machines[1], of: network)
        left.resolver = { [unowned self] name in
            precondition(name == Self.serverName)
            lookups += 1
            return answer.map { .after($0.0, $0.1) } ?? .never
        }
    }

    static func publicKey(of secret: [UInt8]) -> PublicKey {
        var bytes = [UInt8](repeating: 0, count: 32)
        do {
            var span = bytes.mutableSpan
            var octets = span.mutableOctets
            makePrimitives().derivePublicKey(of: secret.span.octets, into: &octets)
        }
        return PublicKey(bytes.span.octets)
    }

    private static func configuration(
        _ secret: [UInt8], _ address: IPAddress, _ peer: PeerConfiguration
    ) -> TunnelConfiguration {
        var configuration = TunnelConfiguration()
        configuration.privateKey = SecretKey(SecretMemory(copying: secret.span.octets))
        configuration.listenPort = 51_820
        configuration.addresses = [InterfaceAddress(address: address, prefixLength: 24)]
        configuration.peers = [peer]
        return configuration
    }

    var now: Instant { network.clock.now }
    var leftStatus: VPNStatus { left.provider.status }

    /// The left configuration, to change it.
    var client: TunnelConfiguration { leftConfiguration }

    func advance(_ seconds: Double) throws {
        try network.run(for: Interval(nanoseconds: UInt64(seconds * 1_000_000_000)))
    }

    /// Starts the left tunnel; the start is under way after this.
    func startLeft() {
        requests += 1
        left.handle(.start(.init(id: .init(rawValue: requests), configuration: leftConfiguration)))
    }

    /// Brings both tunnels up, and lets one packet make a session.
    func bringUp() throws {
        left.handle(.pathChanged(Self.wiFi))
        right.handle(.start(.init(id: .init(rawValue: 1), configuration: rightConfiguration)))
        startLeft()
        try advance(1)
        sendRight(0)
        try advance(1)
        #expect(leftStatus == .connected && right.provider.status == .connected)
        #expect(right.machine.deliveredNumbers == [0])
        right.machine.forgetDelivered()
    }

    /// The left machine has this address and this path from now on; without, it has none.
    func move(to address: IPAddress?, _ path: NetworkPath) {
        left.machine.addresses = address.map { [$0] } ?? []
        left.handle(.pathChanged(path))
    }

    func sendRight(_ number: UInt64) {
        network.send(InnerPacket.numbered(number, from: v4(10, 9, 0, 1), to: v4(10, 9, 0, 2)), from: left.machine)
    }

    func sendLeft(_ number: UInt64) {
        network.send(InnerPacket.numbered(number, from: v4(10, 9, 0, 2), to: v4(10, 9, 0, 1)), from: right.machine)
    }

    /// How many messages of a kind a machine sent: 0 is the left one.
    func count(_ kind: MessageKind, from machine: Int) -> Int {
        network.log.count {
            if $0.machine == machine, case .sent(kind, _, _) = $0.kind { true } else { false }
        }
    }

    /// What came of the starts of the left tunnel, in order.
    var startResults: [TunnelFailure?] {
        left.actions.compactMap { if case .completeStart(_, let failure) = $0.action { .some(failure) } else { nil } }
    }
}
