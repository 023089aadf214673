internal import ByteAccess
internal import IPPacket
internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

/// The way of packets between one queue of the TUN device and one pair of UDP sockets, through the WireGuard core. One thread
/// runs each call to its end: a packet is read, judged, sealed and sent without being handed over.
///
/// ```
///  TUN ── read a super-packet ── admit ── split, pad, seal ── one call for the train ──▶ UDP
///  TUN ◀── one call ── join ── finish ── open in place ── begin ── receive a train ───── UDP
/// ```
struct PacketPath: ~Copyable {
    /// Packets read from the TUN in one turn: enough to share the cost of the calls, few enough that what waits elsewhere gets
    /// its turn within a millisecond.
    private static let packetsPerTurn = 128
    /// Super-packets count for many of them.
    private static let bytesPerTurn = 4 * 65_536
    /// Datagrams, or trains of them, received in one turn. Each slot of the batch takes the memory of the longest train it held.
    private static let datagramsPerTurn = 32
    private static let trainsPerTurn = 8
    private static let roundsPerTurn = 8
    /// A program that receives datagrams has room for a few hundred small ones by default. After that many in one turn the
    /// processor goes to who waits for it, or most would arrive at a full buffer while their reader cannot run.
    private static let packetsPerBurst = 128
    private static let smallPacketLength = 512
    /// How long the device's own messages may keep packets waiting in one turn: a few handshakes, or many messages that cost
    /// little. What is left waits in the device, where a flood of handshakes shows as load.
    private static let actionTime = Interval(nanoseconds: 500_000)
    /// How many sealed bytes leave without waiting for more: what one message carries. While they are under way and opened, the
    /// next are sealed.
    private static let bytesPerFlush = 32_768
    /// The room that the largest packet needs when it is sealed whole.
    private static let largestMessage =
        TUNDevice.maximumPacketLength + Device<OpenSSLCryptography>.messageOverhead

    let shared: SharedDevice
    private(set) var tun: TUNDevice
    /// The bound sockets; none while the link is down, or when the port was taken.
    private(set) var sockets: UDPSocketPair?

    private let cryptography: OpenSSLCryptography
    private var frame = PacketBuffer(capacity: TUNDevice.maximumPacketLength + 16)
    private var received = ReceiveBatch(capacity: Self.datagramsPerTurn)
    private var outgoing: SendBatch
    private var orders: [OpeningOrder] = []
    private var delivered = DeliveredPackets()
    private var joiner: PacketJoiner
    /// What the turn under way has delivered.
    private var deliveredPackets = 0
    private var deliveredBytes = 0
    /// Whether the kernel takes joined super-packets.
    private(set) var superPacketWrites: OffloadCondition

    init(
        tun: consuming TUNDevice, shared: SharedDevice, cryptography: OpenSSLCryptography, offloads: Offloads
    ) {
        let canJoin = tun.headerLength > 0
        joiner = PacketJoiner(joinsTCP: canJoin && tun.offloads.tcp, joinsUDP: canJoin && tun.offloads.udp)
        superPacketWrites = offloads.tun ? (canJoin ? .on : .unsupported(errno: 0)) : .notWanted
        outgoing = SendBatch(
            capacity: Self.packetsPerTurn, byteCapacity: Self.bytesPerFlush + Self.largestMessage,
            wantsSegmentation: offloads.udpSegment)
        self.tun = tun
        self.shared = shared
        self.cryptography = cryptography
    }

    // MARK: The sockets

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

    /// Takes these sockets, or none, and gives up those there were.
    mutating func exchangeSockets(_ new: consuming UDPSocketPair?) -> UDPSocketPair? {
        var sockets = new
        swap(&sockets, &self.sockets)
        return sockets
    }

    /// Whether trains of datagrams leave by one call, for each family, and for how many destinations they do not.
    var segmentation: (v4: OffloadCondition, v6: OffloadCondition, restrictedDestinations: Int) {
        (outgoing.segmentation(.v4), outgoing.segmentation(.v6), outgoing.restrictedDestinationCount)
    }

    /// True when enough waits to be sent, or when what comes next might not fit.
    private var isDueForFlush: Bool {
        outgoing.unusedCount == 0 || outgoing.byteCapacity - outgoing.unusedByteCount >= Self.bytesPerFlush
    }

    private func yieldAfterBurst(of packets: Int, bytes: Int) {
        if packets >= Self.packetsPerBurst, bytes < packets * Self.smallPacketLength { Processor.yield() }
    }

    // MARK: From the TUN to the peers

    /// Moves packets from the TUN to the peers, up to one turn's worth.
    mutating func readTUN() throws(TUNError) {
        let now = HostClock.now()
        var bytes = 0
        var packets = 0
        while packets < Self.packetsPerTurn, bytes < Self.bytesPerTurn, let length = try readPacket(at: now) {
            packets += 1
            bytes += length
        }
        flush(at: now)
        yieldAfterBurst(of: packets, bytes: bytes)
    }

    /// Moves one packet. Returns its length in bytes, or nil when there is none.
    private mutating func readPacket(at now: Instant) throws(TUNError) -> Int? {
        guard let length = try Self.read(from: tun, into: &frame) else { return nil }
        guard let packet = Self.parse(&frame, length: length, headerLength: tun.headerLength) else {
            shared.lock()
            _ = shared.device.dropMalformed()
            shared.unlock()
            return length
        }
        let content = tun.headerLength..<length
        switch Self.admit(content, packet, of: &frame, by: shared, icmp: &outgoing, at: now) {
        case .seal(let order):
            var next: Int? = 0
            while let start = next {
                next = Self.seal(
                    content, packet, of: &frame, from: start, by: order, using: cryptography, into: &outgoing)
                if next != nil || isDueForFlush { flush(at: now) }
            }
        case .unreachable(let length, _):
            try Self.write(first: length, of: &outgoing, to: tun)
        case .staged, .dropped:
            break
        }
        return length
    }

    // A span into one part of the path keeps the others from being used, so the steps are given the parts they need.

    private static func read(
        from tun: borrowing TUNDevice, into frame: inout PacketBuffer
    ) throws(TUNError) -> Int? {
        var bytes = frame.bytes()
        return try tun.read(into: &bytes)
    }

    private static func parse(_ frame: inout PacketBuffer, length: Int, headerLength: Int) -> SuperPacket? {
        let storage = frame.bytes()
        let bytes = storage.bytes
        guard length > headerLength else { return nil }
        var header = VirtioNetworkHeader()
        if headerLength > 0 {
            guard let parsed = try? VirtioNetworkHeader(parsing: bytes.extracting(first: VirtioNetworkHeader.byteCount))
            else { return nil }
            header = parsed
        }
        return try? SuperPacket(parsing: bytes.extracting(headerLength..<length), header: header)
    }

    private static func admit(
        _ content: Range<Int>, _ packet: SuperPacket, of frame: inout PacketBuffer, by shared: SharedDevice,
        icmp output: inout SendBatch, at now: Instant
    ) -> Admission {
        let storage = frame.bytes()
        let bytes = storage.bytes.extracting(content)
        var error = output.unusedBytes()
        shared.lock()
        defer { shared.unlock() }
        return shared.device.admit(bytes, packet, into: &error, at: now)
    }

    private static func seal(
        _ content: Range<Int>, _ packet: SuperPacket, of frame: inout PacketBuffer, from start: Int,
        by order: SealingOrder, using cryptography: OpenSSLCryptography, into outgoing: inout SendBatch
    ) -> Int? {
        let storage = frame.bytes()
        let bytes = storage.bytes.extracting(content)
        var output = outgoing.unusedBytes()
        let sealed = order.seal(bytes, packet, from: start, into: &output, using: cryptography)
        outgoing.append(sealed.train, order.transmission)
        return sealed.next
    }

    private static func write(
        first length: Int, of outgoing: inout SendBatch, to tun: borrowing TUNDevice
    ) throws(TUNError) {
        let output = outgoing.unusedBytes()
        try write(output.bytes.extracting(first: length), to: tun)
    }

    // MARK: From the peers to the TUN

    /// Moves datagrams from one of the sockets to the TUN, up to one turn's worth.
    mutating func readSocket(_ family: AddressFamily) throws(TUNError) {
        deliveredPackets = 0
        deliveredBytes = 0
        try readRounds(family)
        yieldAfterBurst(of: deliveredPackets, bytes: deliveredBytes)
    }

    private mutating func readRounds(_ family: AddressFamily) throws(TUNError) {
        var bytes = 0
        // Where trains may come, few slots are filled at once, and small datagrams need several rounds to make a turn.
        for _ in 0..<Self.roundsPerTurn where bytes < Self.bytesPerTurn {
            let received = try readOnce(family)
            bytes += received.bytes
            if !received.hasMore { return }
        }
    }

    /// Moves what one call receives. Says how many bytes that was, and whether more may wait.
    private mutating func readOnce(_ family: AddressFamily) throws(TUNError) -> (bytes: Int, hasMore: Bool) {
        let count: Int
        let limit: Int
        switch sockets {
        case .none: return (0, false)
        case .some(let sockets):
            limit = sockets.receivesTrains ? Self.trainsPerTurn : Self.datagramsPerTurn
            count = sockets.receive(family, into: &received, limit: limit)
        }
        let now = HostClock.now()
        var bytes = 0
        for index in 0..<count {
            guard let datagram = received.datagram(at: index) else { continue }
            bytes += datagram.length
            var train = datagram.train
            while train.count > 0 {
                let part = train.removeFirst(DeliveredPackets.capacity)
                try deliver(part, of: index, datagram, at: now)
            }
        }
        return (bytes, count == limit)
    }

    /// Moves the packets of one received train.
    private mutating func deliver(
        _ train: MessageTrain, of index: Int, _ datagram: ReceivedDatagram, at now: Instant
    ) throws(TUNError) {
        Self.open(
            train, of: index, datagram, in: &received, by: shared, using: cryptography, orders: &orders, at: now,
            delivering: &delivered)
        if delivered.count == 0 { return }
        deliveredPackets += delivered.count
        deliveredBytes += train.length
        Self.join(delivered, of: index, in: &received, by: &joiner)
        for packet in 0..<joiner.count {
            do {
                try Self.write(packet, of: joiner, index, in: &received, to: tun)
            } catch .superPacketRefused {
                // Some kernels refuse what they promised to take. The packets of this one are written one by one, and
                // from now on all are.
                superPacketWrites = .refused(errno: 0)
                joiner.joinsTCP = false
                joiner.joinsUDP = false
                try Self.writeSeparately(packet, of: joiner, index, in: &received, to: tun)
            }
        }
    }

    private static func open(
        _ train: MessageTrain, of index: Int, _ datagram: ReceivedDatagram, in received: inout ReceiveBatch,
        by shared: SharedDevice, using cryptography: OpenSSLCryptography, orders: inout [OpeningOrder],
        at now: Instant, delivering packets: inout DeliveredPackets
    ) {
        var bytes = received.bytes(at: index)
        packets.removeAll()
        shared.lock()
        shared.device.begin(train, in: bytes.bytes, from: datagram.path, at: now, orders: &orders)
        shared.unlock()
        if orders.isEmpty { return }
        for order in orders.indices { orders[order].open(in: &bytes, using: cryptography) }
        shared.lock()
        for order in orders {
            shared.device.finish(
                order, in: &bytes, from: datagram.path, trafficClass: datagram.trafficClass, at: now,
                delivering: &packets)
        }
        shared.unlock()
        orders.removeAll(keepingCapacity: true)
    }

    private static func join(
        _ packets: borrowing DeliveredPackets, of index: Int, in received: inout ReceiveBatch,
        by joiner: inout PacketJoiner
    ) {
        var bytes = received.bytes(at: index)
        joiner.removeAll()
        for packet in 0..<packets.count { joiner.append(packets[packet], in: &bytes) }
        joiner.finish(in: &bytes)
    }

    private static func write(
        _ packet: Int, of joiner: borrowing PacketJoiner, _ index: Int, in received: inout ReceiveBatch,
        to tun: borrowing TUNDevice
    ) throws(TUNError) {
        let storage = received.bytes(at: index)
        let bytes = storage.bytes
        do throws(TUNError) {
            if tun.headerLength == 0 {
                _ = try tun.write(bytes.extracting(joiner.piece(joiner[packet].pieces.lowerBound)))
            } else {
                _ = try tun.write(packet, of: joiner, in: bytes)
            }
        } catch .linkDown, .packetRefused {
            return
        }
    }

    private static func writeSeparately(
        _ packet: Int, of joiner: borrowing PacketJoiner, _ index: Int, in received: inout ReceiveBatch,
        to tun: borrowing TUNDevice
    ) throws(TUNError) {
        let storage = received.bytes(at: index)
        do throws(TUNError) {
            _ = try tun.writeSeparately(packet, of: joiner, in: storage.bytes)
        } catch .linkDown, .packetRefused {
            return
        }
    }

    /// Writes a finished packet to the TUN. One that the kernel does not take is lost, as on any link.
    private static func write(_ packet: RawSpan, to tun: borrowing TUNDevice) throws(TUNError) {
        do {
            _ = try tun.write(packet)
        } catch .linkDown, .packetRefused {
            return
        }
    }

    // MARK: The device's own messages

    /// Does what the device has to do, up to one turn's worth, and tells about events.
    mutating func act(_ onEvent: (WireGuard.Event) -> Void) {
        let wallClock = HostClock.wallClock()
        var now = HostClock.now()
        let end = now + Self.actionTime
        while now < end, let action = Self.nextAction(of: shared, into: &outgoing, at: now, wallClock: wallClock) {
            if case .report(let event) = action { onEvent(event) }
            if isDueForFlush { flush(at: now) }
            now = HostClock.now()
        }
        flush(at: now)
    }

    private static func nextAction(
        of shared: SharedDevice, into outgoing: inout SendBatch, at now: Instant, wallClock: WallClockTime
    ) -> Action? {
        var output = outgoing.unusedBytes()
        shared.lock()
        let action = shared.device.nextAction(into: &output, at: now, wallClock: wallClock)
        shared.unlock()
        if case .send(let length, let transmission)? = action {
            outgoing.append(MessageTrain(offset: 0, length: length), transmission)
        }
        return action
    }

    /// Sends what waits. Where the kernel refused our end of the way, the device forgets it.
    private mutating func flush(at now: Instant) {
        if outgoing.trainCount == 0 { return }
        var withoutSource: [PeerIndex] = []
        switch sockets {
        case .none:
            outgoing.removeAll()
        case .some(let sockets):
            _ = outgoing.flush(to: sockets, at: now) { failure in
                if failure.outcome == .sentWithoutSource, let peer = failure.peer { withoutSource.append(peer) }
            }
        }
        if withoutSource.isEmpty { return }
        shared.lock()
        for peer in withoutSource { _ = shared.device.clearSource(of: peer) }
        shared.unlock()
    }
}

extension MessageTrain {
    /// Takes up to `count` messages off the front.
    fileprivate mutating func removeFirst(_ count: Int) -> MessageTrain {
        guard count < self.count else {
            defer { self.count = 0 }
            return self
        }
        let first = MessageTrain(offset: offset, count: count, stride: stride, lastLength: stride)
        offset += count * stride
        self.count -= count
        return first
    }
}

extension UDPSocketPair {
    /// Receives from the socket of one family. What is wrong with a socket shows when something is sent.
    fileprivate func receive(_ family: AddressFamily, into batch: inout ReceiveBatch, limit: Int) -> Int {
        switch family {
        case .v4: Self.receive(v4, into: &batch, limit: limit)
        case .v6: Self.receive(v6, into: &batch, limit: limit)
        }
    }

    private static func receive(_ socket: borrowing UDPSocket?, into batch: inout ReceiveBatch, limit: Int) -> Int {
        switch socket {
        case .some(let socket): (try? batch.receive(from: socket, limit: limit)) ?? 0
        case .none: 0
        }
    }
}
