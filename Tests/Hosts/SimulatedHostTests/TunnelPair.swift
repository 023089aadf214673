import ByteAccess
import IPPacket
import OpenSSLCrypto
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

// Other tests have one of their own, whose numbers are the same.
typealias SeededGenerator = SimulatedHost.SeededGenerator
typealias TestNetwork = SimulatedNetwork<OpenSSLCryptography>
typealias TestMachine = SimulatedMachine<OpenSSLCryptography>

func makePrimitives() -> OpenSSLCryptography {
    do {
        return try OpenSSLCryptography()
    } catch {
        fatalError("OpenSSL lacks an algorithm: \(error)")
    }
}

func v4(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> IPAddress { .v4(IPv4Address(a, b, c, d)) }

extension SimulatedMachine where Primitives == OpenSSLCryptography {
    /// Gives the device a private key and returns the public one.
    func setKey(_ privateKey: [UInt8], at now: Instant) -> PublicKey {
        device.setPrivateKey(privateKey.span.octets, at: now)
        var publicKey = [UInt8](repeating: 0, count: 32)
        do {
            var span = publicKey.mutableSpan
            var bytes = span.mutableOctets
            makePrimitives().derivePublicKey(of: privateKey.span.octets, into: &bytes)
        }
        return PublicKey(publicKey.span.octets)
    }

    /// Adds a peer with its allowed IPs.
    @discardableResult
    func add(_ key: PublicKey, at endpoint: Endpoint?, allowing prefixes: IPPrefix...) -> PeerIndex {
        guard let peer = device.addPeer(key) else { fatalError("no peer") }
        if let endpoint { device.setEndpoint(endpoint, of: peer) }
        for prefix in prefixes { device.addAllowedIP(prefix, for: peer) }
        return peer
    }

    var deliveredNumbers: [UInt64] { delivered.map { InnerPacket.number(of: $0) } }
}

/// Two machines with a tunnel between them: 10.9.0.1 at 192.0.2.1 and 10.9.0.2 at 192.0.2.2.
final class TunnelPair {
    let network: TestNetwork
    let left: TestMachine
    let right: TestMachine
    let leftPeer: PeerIndex
    let rightPeer: PeerIndex
    let leftAddress = v4(10, 9, 0, 1)
    let rightAddress = v4(10, 9, 0, 2)
    private(set) var leftKey: PublicKey
    let rightKey: PublicKey
    var generator: SeededGenerator
    let start: Instant

    init(seed: UInt64, faults: LinkFaults = LinkFaults(delay: .milliseconds(10))) {
        generator = SeededGenerator(seed: seed)
        network = SimulatedNetwork(seed: generator.next(), makePrimitives: makePrimitives)
        left = network.addMachine(v4(192, 0, 2, 1))
        right = network.addMachine(v4(192, 0, 2, 2))
        left.uplink.faults = faults
        right.uplink.faults = faults
        start = network.clock.now
        leftKey = left.setKey(generator.bytes(32), at: start)
        rightKey = right.setKey(generator.bytes(32), at: start)
        let (leftEnd, rightEnd) = (
            Endpoint(address: v4(192, 0, 2, 1), port: 51820), Endpoint(address: v4(192, 0, 2, 2), port: 51820)
        )
        // From the left, the right one's packets: its peer.
        rightPeer = left.add(rightKey, at: rightEnd, allowing: IPPrefix(host: v4(10, 9, 0, 2)))
        leftPeer = right.add(leftKey, at: leftEnd, allowing: IPPrefix(host: v4(10, 9, 0, 1)))
    }

    var elapsed: Double { Double(network.clock.now.since(start).nanoseconds) / 1_000_000_000 }

    func sendRight(_ number: UInt64) {
        network.send(InnerPacket.numbered(number, from: leftAddress, to: rightAddress), from: left)
    }

    func sendLeft(_ number: UInt64) {
        network.send(InnerPacket.numbered(number, from: rightAddress, to: leftAddress), from: right)
    }

    func advance(_ seconds: Double) throws {
        try network.run(for: Interval(nanoseconds: UInt64(seconds * 1_000_000_000)))
    }

    /// How many messages of a kind a machine sent.
    func count(_ kind: MessageKind, from machine: Int) -> Int {
        network.log.count {
            if $0.machine == machine, case .sent(kind, _, _) = $0.kind { true } else { false }
        }
    }

    /// The times at which a machine sent messages of a kind, in seconds since the beginning.
    func times(of kind: MessageKind, from machine: Int) -> [Double] {
        network.log.compactMap {
            guard $0.machine == machine, case .sent(kind, _, _) = $0.kind else { return nil }
            return Double($0.time.since(start).nanoseconds) / 1_000_000_000
        }
    }
}
