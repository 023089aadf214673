import ByteAccess
import CMeasurement
import IPPacket
import OpenSSLCrypto
import Provider
import WireGuard

/// The whole way of a packet from the TUN to the datagram that is sent.
struct Transmitting: ~Copyable, Benchmark {
    let operations = 512
    private var tunnel: MemoryTunnel
    private let packet: [UInt8]
    private var output = [UInt8](repeating: 0, count: 2048)

    init(packetLength: Int) throws {
        tunnel = try MemoryTunnel()
        packet = TestPackets.tcp(length: packetLength)
    }

    mutating func run() {
        var output = takeBytes(of: &self.output)
        defer { self.output = output }
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        let packet = packet
        for _ in 0..<operations {
            guard case .send(let train, _) = tunnel.near.transmit(packet.span.octets, into: &bytes, at: tunnel.now)
            else { preconditionFailure("a packet was not sent") }
            measurement_consume(UInt64(train.length))
            tunnel.advance()
        }
    }
}

/// The whole way of a super-packet from the TUN to the train of datagrams that is sent; an operation is one packet of it.
struct TransmittingSuperPackets: ~Copyable, Benchmark {
    let operations = 16 * TestSuperPacket.segmentCount
    private var tunnel: MemoryTunnel
    private let packet: TestSuperPacket
    private var output = [UInt8](repeating: 0, count: 1 << 17)

    init(isTCP: Bool) throws {
        tunnel = try MemoryTunnel()
        packet = TestSuperPacket(isTCP: isTCP)
    }

    mutating func run() {
        var output = takeBytes(of: &self.output)
        defer { self.output = output }
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        let packet = packet
        for _ in 0..<operations / TestSuperPacket.segmentCount {
            let outcome = tunnel.near.transmit(
                packet.bytes.span.octets, header: packet.header, into: &bytes, at: tunnel.now)
            guard case .send(let train, _) = outcome, train.count == TestSuperPacket.segmentCount else {
                preconditionFailure("a super-packet was not sent as one train")
            }
            measurement_consume(UInt64(train.length))
            tunnel.advance()
        }
    }
}

/// The whole way of a train of datagrams to the packets that are written to the TUN; an operation is one packet.
struct Receiving: ~Copyable, Benchmark {
    let operations: Int
    private let trains: Int
    private let trainLength: Int
    private var tunnel: MemoryTunnel
    private let packet: [UInt8]
    private var buffer: [UInt8]
    private var messageLength = 0
    private var packets = DeliveredPackets()

    init(trainsOf count: Int, packetLength: Int) throws {
        trainLength = count
        trains = max(1, 512 / count)
        operations = trains * count
        tunnel = try MemoryTunnel()
        packet = TestPackets.tcp(length: packetLength)
        buffer = [UInt8](repeating: 0, count: operations * 2048)
    }

    /// Seals packets one by one, and lays them next to each other.
    mutating func prepare() {
        var buffer = takeBytes(of: &self.buffer)
        defer { self.buffer = buffer }
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        let packet = packet
        for index in 0..<operations {
            var output = bytes.slice(index * messageLength..<bytes.byteCount)
            guard case .send(let train, _) = tunnel.near.transmit(packet.span.octets, into: &output, at: tunnel.now)
            else { preconditionFailure("a packet was not sent") }
            messageLength = train.length
        }
    }

    mutating func run() {
        var buffer = takeBytes(of: &self.buffer)
        defer { self.buffer = buffer }
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        for index in 0..<trains {
            let train = MessageTrain(
                offset: index * trainLength * messageLength, count: trainLength, stride: messageLength,
                lastLength: messageLength)
            tunnel.far.receive(
                train, in: &bytes, from: MemoryTunnel.nearPath, trafficClass: 0, at: tunnel.now, delivering: &packets)
            precondition(packets.count == trainLength, "a packet was not delivered")
            measurement_consume(UInt64(packets[0].lowerBound))
            tunnel.advance()
        }
    }
}

/// Packets for a peer without a session: each pushes an older one out. Not the way of most packets, but that of a flood.
struct Staging: ~Copyable, Benchmark {
    let operations = 2048
    private var device: Device<OpenSSLCryptography>
    private let packet: [UInt8]
    private var output = [UInt8](repeating: 0, count: 2048)
    private let now = Instant(nanoseconds: 1_000_000_000_000)

    init(packetLength: Int) throws {
        packet = TestPackets.tcp(length: packetLength)
        device = try Device(cryptography: OpenSSLCryptography(), entropy: SystemRandomNumberGenerator())
        device.setLink(up: true, at: now)
        let key = [UInt8](repeating: 3, count: 32)
        guard let index = device.addPeer(PublicKey(key.span.octets)) else { preconditionFailure("no room for a peer") }
        device.setEndpoint(MemoryTunnel.farPath.remote, of: index)
        device.addAllowedIP(IPPrefix(host: TestPackets.far), for: index)
    }

    mutating func run() {
        var output = takeBytes(of: &self.output)
        defer { self.output = output }
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        let packet = packet
        for _ in 0..<operations {
            guard case .staged = device.transmit(packet.span.octets, into: &bytes, at: now) else {
                preconditionFailure("a packet did not wait")
            }
        }
    }
}
