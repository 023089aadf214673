internal import ByteAccess
internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

/// The way of packets between the TUN device and the UDP sockets, through the WireGuard core. One thread runs each call to its
/// end: a packet is read, judged, sealed and sent without being handed over.
struct PacketPath: ~Copyable {
    /// Packets read from the TUN, and datagrams sent, in one turn: enough to share the cost of the calls, few enough that
    /// what waits elsewhere gets its turn within a millisecond.
    private static let packetsPerTurn = 64
    private static let datagramsPerTurn = 32
    /// How long the device's own messages may keep packets waiting in one turn: a few handshakes, or many messages that cost
    /// little. What is left waits in the device, where a flood of handshakes shows as load.
    private static let actionTime = Interval(nanoseconds: 500_000)
    /// The room that the largest packet needs when it is sealed.
    private static let largestMessage =
        TUNDevice.maximumPacketLength + Device<OpenSSLCryptography>.messageOverhead

    let tun: TUNDevice
    var device: Device<OpenSSLCryptography>
    /// The bound sockets; none while the link is down, or when the port was taken.
    var sockets: UDPSocketPair?

    private var packet = PacketBuffer(capacity: TUNDevice.maximumPacketLength + 1)
    private var received = ReceiveBatch(capacity: Self.datagramsPerTurn)
    private var outgoing = SendBatch(capacity: Self.packetsPerTurn, byteCapacity: 4 * Self.largestMessage)
    private var delivered = DeliveredPackets()

    init(tun: consuming TUNDevice, device: consuming Device<OpenSSLCryptography>) {
        self.tun = tun
        self.device = device
    }

    /// True while sockets are bound.
    var hasSockets: Bool {
        switch sockets {
        case .some: true
        case .none: false
        }
    }

    /// What the privileged side knows the sockets by.
    var socketIdentifiers: [SocketIdentifier] {
        switch sockets {
        case .some(let sockets): sockets.identifiers
        case .none: []
        }
    }

    /// Gives up the sockets.
    mutating func takeSockets() -> UDPSocketPair? {
        var taken: UDPSocketPair? = nil
        swap(&taken, &sockets)
        return taken
    }

    /// Moves packets from the TUN to the peers, up to one turn's worth.
    mutating func readTUN() throws(TUNError) {
        let now = HostClock.now()
        for _ in 0..<Self.packetsPerTurn {
            guard
                try Self.readPacket(
                    from: tun, through: &device, packet: &packet, into: &outgoing, at: now)
            else { break }
            if outgoing.unusedCount == 0 || outgoing.unusedByteCount < Self.largestMessage { flush() }
        }
        flush()
    }

    /// Moves one packet. False when there is none.
    private static func readPacket(
        from tun: borrowing TUNDevice, through device: inout Device<OpenSSLCryptography>, packet: inout PacketBuffer,
        into outgoing: inout SendBatch, at now: Instant
    ) throws(TUNError) -> Bool {
        var bytes = packet.bytes()
        guard let length = try tun.read(into: &bytes) else { return false }
        var output = outgoing.unusedBytes()
        switch device.transmit(bytes.bytes.extracting(first: length), into: &output, at: now) {
        case .send(let train, let transmission):
            outgoing.append(train, transmission)
        case .unreachable(let length, _):
            try write(output.bytes.extracting(first: length), to: tun)
        case .staged, .dropped:
            break
        }
        return true
    }

    /// Moves datagrams from one of the sockets to the TUN, up to one turn's worth.
    mutating func readSocket(_ family: AddressFamily) throws(TUNError) {
        let count: Int
        switch sockets {
        case .none: return
        case .some(let sockets): count = sockets.receive(family, into: &received)
        }
        let now = HostClock.now()
        for index in 0..<count {
            try Self.deliver(index, of: &received, through: &device, &delivered, to: tun, at: now)
        }
    }

    /// Moves the packets of one received datagram.
    private static func deliver(
        _ index: Int, of received: inout ReceiveBatch, through device: inout Device<OpenSSLCryptography>,
        _ delivered: inout DeliveredPackets, to tun: borrowing TUNDevice, at now: Instant
    ) throws(TUNError) {
        guard let datagram = received.datagram(at: index) else { return }
        var bytes = received.bytes(at: index)
        device.receive(
            MessageTrain(offset: 0, length: datagram.length), in: &bytes, from: datagram.path,
            trafficClass: datagram.trafficClass, at: now, delivering: &delivered)
        for packet in 0..<delivered.count {
            try write(bytes.bytes.extracting(delivered[packet]), to: tun)
        }
    }

    /// Does what the device has to do, up to one turn's worth, and tells about events.
    mutating func act(_ onEvent: (WireGuard.Event) -> Void) {
        let wallClock = HostClock.wallClock()
        var now = HostClock.now()
        let end = now + Self.actionTime
        while now < end, let action = Self.nextAction(of: &device, into: &outgoing, at: now, wallClock: wallClock) {
            if case .report(let event) = action { onEvent(event) }
            if outgoing.unusedCount == 0 || outgoing.unusedByteCount < Self.largestMessage { flush() }
            now = HostClock.now()
        }
        flush()
    }

    private static func nextAction(
        of device: inout Device<OpenSSLCryptography>, into outgoing: inout SendBatch, at now: Instant,
        wallClock: WallClockTime
    ) -> Action? {
        var output = outgoing.unusedBytes()
        let action = device.nextAction(into: &output, at: now, wallClock: wallClock)
        if case .send(let length, let transmission)? = action {
            outgoing.append(MessageTrain(offset: 0, length: length), transmission)
        }
        return action
    }

    /// Sends what waits. Where the kernel refused our end of the way, the device forgets it.
    private mutating func flush() {
        var withoutSource: [PeerIndex] = []
        switch sockets {
        case .none:
            outgoing.removeAll()
        case .some(let sockets):
            _ = outgoing.flush(to: sockets) { failure in
                if failure.outcome == .sentWithoutSource, let peer = failure.peer { withoutSource.append(peer) }
            }
        }
        for peer in withoutSource { _ = device.clearSource(of: peer) }
    }

    /// Writes a packet to the TUN. One that the kernel does not take is lost, as on any link.
    private static func write(_ packet: RawSpan, to tun: borrowing TUNDevice) throws(TUNError) {
        do {
            _ = try tun.write(packet)
        } catch .linkDown, .packetRefused {
            return
        }
    }
}

extension UDPSocketPair {
    /// Receives from the socket of one family. What is wrong with a socket shows when something is sent.
    fileprivate func receive(_ family: AddressFamily, into batch: inout ReceiveBatch) -> Int {
        switch family {
        case .v4: Self.receive(v4, into: &batch)
        case .v6: Self.receive(v6, into: &batch)
        }
    }

    private static func receive(_ socket: borrowing UDPSocket?, into batch: inout ReceiveBatch) -> Int {
        switch socket {
        case .some(let socket): (try? batch.receive(from: socket)) ?? 0
        case .none: 0
        }
    }
}
