internal import ByteAccess
internal import Glibc
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
    static let packetsPerTurn = 128
    /// Super-packets count for many of them.
    static let bytesPerTurn = 4 * 65_536
    /// Datagrams, or trains of them, received in one turn. Each slot of the batch takes the memory of the longest train it held.
    static let datagramsPerTurn = 32
    static let trainsPerTurn = 8
    /// As long as no trains come, more single datagrams: their packets can be joined.
    static let singlesPerTurn = 16
    /// A train of so many is joined and delivered by itself, and what comes behind it is opened afterwards.
    static let longTrain = 16
    static let roundsPerTurn = 8
    /// A program that receives datagrams has room for a few hundred small ones by default. After that many in one turn the
    /// processor goes to who waits for it, or most would arrive at a full buffer while their reader cannot run.
    private static let packetsPerBurst = 128
    private static let smallPacketLength = 512
    /// After so many refused super-packets in a row no more are tried.
    static let refusalLimit = 8
    /// How long the device's own messages may keep packets waiting in one turn: a few handshakes, or many messages that cost
    /// little. What is left waits in the device, where a flood of handshakes shows as load.
    private static let actionTime = Interval(nanoseconds: 500_000)
    /// How many sealed bytes leave without waiting for more: what one message carries. While they are under way and opened, the
    /// next are sealed.
    private static let bytesPerFlush = 32_768
    /// The room that the largest packet needs when it is sealed whole.
    static let largestMessage =
        TUNDevice.maximumPacketLength + Device<OpenSSLCryptography>.messageOverhead

    let shared: SharedDevice
    private(set) var tun: TUNDevice
    /// The bound sockets; none while the link is down, or when the port was taken.
    private(set) var sockets: UDPSocketPair?

    let cryptography: OpenSSLCryptography
    /// Where queries of DNS go; nil for where all other packets go.
    let queries: QueryInbox?
    var frame = PacketBuffer(capacity: TUNDevice.maximumPacketLength + 16)
    var received = ReceiveBatch(capacity: Self.datagramsPerTurn)
    var outgoing: SendBatch
    var orders: [OpeningOrder] = []
    var delivered = DeliveredPackets()
    var joiner: PacketJoiner
    private let passedByAddress = PassedByAddress()
    /// True when the last datagrams came in trains.
    var sawTrain = true
    /// What the turn under way has delivered.
    var deliveredPackets = 0
    var deliveredBytes = 0
    /// Whether the kernel takes joined super-packets.
    var superPacketWrites: OffloadCondition
    /// How many in a row it did not take.
    var refusedSuperPackets = 0
    private let offloads: Offloads

    init(
        tun: consuming TUNDevice, shared: SharedDevice, cryptography: OpenSSLCryptography, offloads: Offloads,
        queries: QueryInbox? = nil
    ) {
        self.queries = queries
        let canJoin = tun.headerLength > 0
        joiner = PacketJoiner(joinsTCP: canJoin && tun.offloads.tcp, joinsUDP: canJoin && tun.offloads.udp)
        superPacketWrites = offloads.tun ? (canJoin ? .on : .unsupported(errno: EINVAL)) : .notWanted
        outgoing = SendBatch(
            capacity: Self.packetsPerTurn, byteCapacity: Self.bytesPerFlush + Self.largestMessage,
            wantsSegmentation: offloads.udpSegment)
        self.tun = tun
        self.offloads = offloads
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

    /// What became of the offloads.
    var offloadState: OffloadState {
        var state = OffloadState(
            tunTCP: granted(tun.offloads.tcp), tunUDP: granted(tun.offloads.udp), tunWrite: superPacketWrites,
            udpSegmentV4: outgoing.segmentation(.v4), udpSegmentV6: outgoing.segmentation(.v6),
            restrictedDestinations: outgoing.restrictedDestinationCount,
            udpGRO: offloads.udpGRO ? .on : .notWanted)
        switch sockets {
        case .some(let sockets):
            if offloads.udpGRO, !sockets.receivesTrains { state.udpGRO = .unsupported(errno: ENOPROTOOPT) }
        case .none: break
        }
        return state
    }

    private func granted(_ isGranted: Bool) -> OffloadCondition {
        offloads.tun ? (isGranted ? .on : .unsupported(errno: EINVAL)) : .notWanted
    }

    /// True when enough waits to be sent, or when what comes next might not fit.
    var isDueForFlush: Bool {
        outgoing.unusedCount == 0 || outgoing.byteCapacity - outgoing.unusedByteCount >= Self.bytesPerFlush
    }

    func yieldAfterBurst(of packets: Int, bytes: Int) {
        if packets >= Self.packetsPerBurst, bytes < packets * Self.smallPacketLength { Processor.yield() }
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
    mutating func flush(at now: Instant) {
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
        let narrow = outgoing.takePeersOnNarrowPaths()
        if withoutSource.isEmpty, narrow.isEmpty { return }
        shared.lock()
        for peer in withoutSource { _ = shared.device.clearSource(of: peer) }
        for peer in narrow { shared.device.limitMessages(to: peer, until: now + SendBatch.narrowPathLifetime) }
        shared.unlock()
    }
}
