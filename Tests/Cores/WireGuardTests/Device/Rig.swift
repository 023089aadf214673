import ByteAccess
import IPPacket
import OpenSSLCrypto
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

// The simulated host has one of its own, whose numbers are the same.
typealias SeededGenerator = TestSupport.SeededGenerator

typealias TestDevice = Device<OpenSSLCryptography>
typealias TestNetwork = SimulatedNetwork<OpenSSLCryptography>
typealias TestMachine = SimulatedMachine<OpenSSLCryptography>

/// The numbers of the WireGuard paper (section 6.1) and, where it is silent, of the kernel driver, restated: the module under
/// test is compared with these, not with its own constants.
enum Paper {
    static let rekeyAfterMessages: UInt64 = 1 << 60
    static let rejectAfterMessages: UInt64 = 18_446_744_073_709_543_423  // 2^64 - 2^13 - 1
    static let rekeyAfterTime: Double = 120
    static let rejectAfterTime: Double = 180
    static let rekeyAttemptTime: Double = 90
    static let rekeyTimeout: Double = 5
    static let keepaliveTimeout: Double = 10
    static let jitter: Double = 0.333  // kernel
    static let handshakeTries = 20  // kernel
    static let stagedPackets = 128  // kernel
    static let cookieLifetime: Double = 120
}

func makePrimitives() -> OpenSSLCryptography {
    do {
        return try OpenSSLCryptography()
    } catch {
        fatalError("OpenSSL lacks an algorithm: \(error)")
    }
}

func seconds(_ seconds: Double) -> Interval {
    Interval(nanoseconds: UInt64((seconds * 1_000_000_000).rounded()))
}

func v4(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> IPAddress { .v4(IPv4Address(a, b, c, d)) }

let nanosecond = 0.000_000_001

/// A device and a scripted peer that does only what a test tells it to, with the time in the test's hands.
final class Rig {
    let network: TestNetwork
    let machine: TestMachine
    let start: Instant
    let own: ReferenceKeyPair
    let remote: ReferenceKeyPair
    var presharedKey = [UInt8](repeating: 0, count: 32)
    /// Where the scripted peer is.
    var endpoint = Endpoint(address: v4(192, 0, 2, 2), port: 7000)
    let peer: PeerIndex
    var generator: SeededGenerator
    /// The seconds of the scripted peer's next time stamp.
    private var stamp: UInt64 = 1_750_000_000

    /// The tunnel's addresses of the device and of the scripted peer.
    let ownAddress = v4(10, 9, 0, 1)
    let remoteAddress = v4(10, 9, 0, 2)

    init(seed: UInt64 = 1, hasEndpoint: Bool = true) {
        var generator = SeededGenerator(seed: seed)
        let (own, remote) = (ReferenceKeyPair(using: &generator), ReferenceKeyPair(using: &generator))
        network = SimulatedNetwork(seed: generator.next(), makePrimitives: makePrimitives)
        machine = network.addMachine(v4(192, 0, 2, 1), v4(192, 0, 2, 99), port: 51820)
        machine.device.setPrivateKey(own.privateKey.octets, at: network.clock.now)
        guard let peer = machine.device.addPeer(PublicKey(remote.publicKey.octets)) else { fatalError("no peer") }
        machine.device.addAllowedIP(IPPrefix(host: remoteAddress), for: peer)
        if hasEndpoint { machine.device.setEndpoint(endpoint, of: peer) }
        self.peer = peer
        self.own = own
        self.remote = remote
        self.generator = generator
        start = network.clock.now
    }

    var device: TestDevice {
        _read { yield machine.device }
        _modify { yield &machine.device }
    }

    var now: Instant { network.clock.now }

    /// Seconds since the beginning.
    var elapsed: Double { Double(now.since(start).nanoseconds) / 1_000_000_000 }

    func drops(_ reason: DropReason) -> UInt64 { machine.device.drops[reason] }

    // Expectations cannot hold a device, which is not copyable: they ask here.

    func nextDeadline() -> Instant? { machine.device.nextDeadline() }

    var state: Peer { machine.device.peer(peer) }

    var indexCount: Int { machine.device.indices.count }

    /// Sets the interval of persistent keepalives. Returns true when that turned them on.
    @discardableResult
    func setKeepalive(_ interval: Double?) -> Bool {
        machine.device.setPersistentKeepalive(interval.map { seconds($0) }, of: peer, at: now)
    }

    /// Sets the device's private key.
    func setPrivateKey(_ key: [UInt8]) {
        machine.device.setPrivateKey(key.octets, at: now)
    }

    /// Sets the preshared key at both ends.
    func setPresharedKey(_ key: [UInt8]) {
        presharedKey = key
        machine.device.setPresharedKey(key.octets, of: peer)
    }

    /// Adds another peer.
    func addPeer(_ publicKey: [UInt8]) -> PeerIndex {
        guard let peer = machine.device.addPeer(PublicKey(publicKey.octets)) else { fatalError("no peer") }
        return peer
    }

    /// Lets a train arrive and returns the packets that came out of the tunnel.
    func receive(_ train: MessageTrain, in buffer: [UInt8], from path: Path) -> [[UInt8]] {
        var buffer = buffer
        var delivered = DeliveredPackets()
        do {
            var span = buffer.mutableSpan
            var bytes = span.mutableOctets
            machine.device.receive(
                train, in: &bytes, from: path, trafficClass: 0, at: now, delivering: &delivered)
        }
        return (0..<delivered.count).map { Array(buffer[delivered[$0]]) }
    }

    // MARK: Time and what is sent

    /// Lets time pass; what the device sends meanwhile is kept for `sent`.
    func advance(_ interval: Double) throws {
        try network.run(for: seconds(interval))
    }

    /// Lets time pass up to `time` seconds after the beginning.
    func advance(to time: Double) throws {
        try network.run(until: start + seconds(time))
    }

    /// What the device sent since the last call, up to now.
    func sent() throws -> [SimulatedDatagram] {
        try network.run()
        return network.takeOutside()
    }

    /// The first datagram that the device sent since the last call.
    func firstSent() throws -> SimulatedDatagram {
        try #require(try sent().first)
    }

    /// Sends a packet into the tunnel and returns the first datagram that the device sent because of it.
    func firstSent(for packet: [UInt8]) throws -> SimulatedDatagram {
        try #require(try send(packet).first)
    }

    /// When a datagram was sent, in seconds since the beginning.
    func time(of datagram: SimulatedDatagram) -> Double {
        Double(datagram.time.since(start).nanoseconds) / 1_000_000_000
    }

    // MARK: Packets

    func packet(_ number: UInt64) -> [UInt8] {
        InnerPacket.numbered(number, from: ownAddress, to: remoteAddress)
    }

    func reply(_ number: UInt64) -> [UInt8] {
        InnerPacket.numbered(number, from: remoteAddress, to: ownAddress)
    }

    /// Sends a packet into the tunnel and returns what the device put on the network because of it.
    @discardableResult
    func send(_ packet: [UInt8]) throws -> [SimulatedDatagram] {
        network.send(packet, from: machine)
        return try sent()
    }

    /// Lets a datagram arrive and returns the packets that came out of the tunnel. Answers wait for `sent`.
    @discardableResult
    func receive(_ datagram: [UInt8], from source: Endpoint? = nil, trafficClass: UInt8 = 0) throws -> [[UInt8]] {
        let packets = network.inject(datagram, from: source ?? endpoint, to: machine, trafficClass: trafficClass)
        try network.run()
        return packets
    }

    // MARK: Handshakes

    /// A TAI64N stamp: 2^62 + 10 + seconds and nanoseconds, big-endian.
    static func timestamp(_ seconds: UInt64, _ nanoseconds: UInt32 = 0) -> [UInt8] {
        Reference.littleEndian(0x4000_0000_0000_000a + seconds).reversed()
            + Reference.littleEndian(nanoseconds).reversed()
    }

    /// A time stamp later than those before.
    func nextTimestamp() -> [UInt8] {
        stamp += 1
        return Self.timestamp(stamp)
    }

    /// An initiation of the scripted peer.
    func initiation(
        timestamp: [UInt8]? = nil, cookie: [UInt8]? = nil, own key: ReferenceKeyPair? = nil,
        claimedEphemeral: [UInt8]? = nil
    ) -> ReferenceInitiator {
        ReferenceInitiator(
            own: key ?? remote, responder: own.publicKey, presharedKey: presharedKey,
            timestamp: timestamp ?? nextTimestamp(), index: UInt32.random(in: 0...UInt32.max, using: &generator),
            ephemeral: ReferenceKeyPair(using: &generator), cookie: cookie, claimedEphemeral: claimedEphemeral)
    }

    /// A handshake that the scripted peer starts. The session is not confirmed yet.
    func handshakeAsResponder() throws -> ReferenceSession {
        let initiator = initiation()
        try receive(initiator.message)
        let response = try #require(try sent().first { MessageKind(of: $0.bytes) == .response })
        return try #require(initiator.finish(response.bytes))
    }

    /// A handshake that the scripted peer starts, confirmed by an empty message.
    func sessionAsResponder() throws -> ReferenceSession {
        var session = try handshakeAsResponder()
        try receive(session.seal([]))
        return session
    }

    /// The scripted peer's answer to an initiation.
    func response(
        to initiation: [UInt8], claimedEphemeral: [UInt8]? = nil, cookie: [UInt8]? = nil
    ) throws -> (message: [UInt8], session: ReferenceSession) {
        let responder = try #require(ReferenceResponder(own: remote, initiation))
        return responder.respond(
            presharedKey: presharedKey, index: UInt32.random(in: 0...UInt32.max, using: &generator),
            ephemeral: ReferenceKeyPair(using: &generator), cookie: cookie, claimedEphemeral: claimedEphemeral)
    }

    /// A handshake that the device starts for a packet. Returns the session after the packet came and an empty message
    /// answered.
    func sessionAsInitiator() throws -> ReferenceSession {
        let initiation = try #require(try send(packet(0)).first { MessageKind(of: $0.bytes) == .initiation })
        var (message, session) = try response(to: initiation.bytes)
        try receive(message)
        let first = try #require(try sent().first)
        #expect(session.open(first.bytes) != nil)
        message = session.seal([])
        try receive(message)
        return session
    }
}

extension [SimulatedDatagram] {
    var kinds: [MessageKind] { map { MessageKind(of: $0.bytes) } }
}
