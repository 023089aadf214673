import ByteAccess
public import IPPacket
public import Provider
public import WireGuard

/// A datagram on the simulated network.
public struct SimulatedDatagram: Equatable, Sendable {
    /// When it was sent.
    public var time: Instant
    /// The UDP payload.
    public var bytes: [UInt8]
    /// Where it comes from.
    public var source: Endpoint
    /// Where it goes.
    public var destination: Endpoint
    /// The TOS or traffic class of its header.
    public var trafficClass: UInt8

    /// A datagram.
    public init(time: Instant, bytes: [UInt8], source: Endpoint, destination: Endpoint, trafficClass: UInt8 = 0) {
        self.time = time
        self.bytes = bytes
        self.source = source
        self.destination = destination
        self.trafficClass = trafficClass
    }
}

/// A machine with one WireGuard device, a TUN and a UDP port: the part of a host that has no clock and no network.
public final class SimulatedMachine<Primitives: Cryptography> {
    /// The device.
    public var device: Device<Primitives>
    /// The addresses that the machine is reached at. The first one of a family is what it sends from unless asked otherwise.
    public var addresses: [IPAddress]
    /// The UDP port of the device, in host order.
    public var port: UInt16 {
        didSet { device.listenPort = port }
    }
    /// The link by which everything leaves the machine.
    public var uplink: FaultyLink
    /// False while the machine has no UDP sockets: nothing comes in or goes out.
    public var hasSockets = true
    /// True while the machine sleeps: nothing comes in, and its device is not asked for anything.
    public var isAsleep = false
    /// Called with what the device reports, right then.
    public var reportHandler: ((Event) -> Void)?
    /// The packets that came out of the tunnel, oldest first.
    public internal(set) var delivered: [[UInt8]] = []
    /// The ICMP errors that the device answered packets with, oldest first.
    public internal(set) var unreachable: [[UInt8]] = []
    /// What the device reported, oldest first.
    public internal(set) var reports: [Event] = []

    private var output = [UInt8](repeating: 0, count: 1 << 16)

    init(device: consuming Device<Primitives>, addresses: [IPAddress], port: UInt16, uplink: FaultyLink) {
        self.device = device
        self.addresses = addresses
        self.port = port
        self.uplink = uplink
        self.device.listenPort = port
    }

    /// Forgets the packets delivered so far.
    public func forgetDelivered() {
        delivered.removeAll()
    }

    /// Hands a packet to the device, as a read from the TUN would. Returns what became of it, and the message to send.
    func transmit(_ packet: [UInt8], at now: Instant) -> (PacketFate, [UInt8], Transmission?) {
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        switch device.transmit(packet.span.octets, into: &bytes, at: now) {
        case .send(let train, let transmission):
            precondition(train.count == 1, "one packet makes one message")
            return (.sent, Array(output[train.range(of: 0)]), transmission)
        case .staged:
            return (.staged, [], nil)
        case .unreachable(let length, let reason):
            unreachable.append(Array(output[..<length]))
            return (.unreachable(length: length, reason), [], nil)
        case .dropped(let reason):
            return (.dropped(reason), [], nil)
        }
    }

    /// Hands a datagram to the device. Returns the packets that were inside.
    func receive(_ datagram: SimulatedDatagram, at now: Instant) -> [[UInt8]] {
        var buffer = datagram.bytes
        // A real host could not tell an empty datagram from one that is too short either.
        var packets = DeliveredPackets()
        let source = LocalSource(address: datagram.destination.address, interfaceIndex: 1)
        do {
            let train = MessageTrain(offset: 0, length: buffer.count)
            var span = buffer.mutableSpan
            var bytes = span.mutableOctets
            device.receive(
                train, in: &bytes, from: Path(remote: datagram.source, source: source),
                trafficClass: datagram.trafficClass, at: now, delivering: &packets)
        }
        let inner = (0..<packets.count).map { Array(buffer[packets[$0]]) }
        delivered += inner
        return inner
    }

    /// Asks the device for its next action. The message of a `send` is returned beside it.
    func nextAction(at clock: VirtualClock) -> (Action, [UInt8])? {
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        guard let action = device.nextAction(into: &bytes, at: clock.now, wallClock: clock.wallClock) else {
            return nil
        }
        guard case .send(let length, _) = action else { return (action, []) }
        return (action, Array(output[..<length]))
    }

    /// The datagram that leaves the machine for a message of its device, or nil when it has no address of that family. As a
    /// kernel would, it sends from the asked address only while the machine has it.
    func datagram(_ bytes: [UInt8], _ transmission: Transmission, at now: Instant) -> SimulatedDatagram? {
        var path = transmission.path
        if let source = path.source, !addresses.contains(source.address), let peer = transmission.peer {
            path = device.clearSource(of: peer) ?? path
        }
        let remote = path.remote
        let chosen = path.source?.address ?? addresses.first { $0.version == remote.address.version }
        guard let chosen else { return nil }
        return SimulatedDatagram(
            time: now, bytes: bytes, source: Endpoint(address: chosen, port: port), destination: remote,
            trafficClass: transmission.trafficClass)
    }
}
