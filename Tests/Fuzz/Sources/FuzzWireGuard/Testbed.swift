import FuzzSupport
import IPPacket
import Provider
import SimulatedHost
import WireGuard

typealias Network = SimulatedNetwork<MutatingCryptography>
typealias Machine = SimulatedMachine<MutatingCryptography>

/// Two devices that are each other's peers. What they send reaches nobody by itself: the program delivers it, whole, changed,
/// late, often or never.
struct Testbed {
    let network: Network
    let machines: [Machine]
    private let primitives: [MutatingCryptography]
    private var peers: [PeerIndex] = []
    /// Datagrams that were sent and may be delivered, newest last, each with the machine it is for.
    private var pool: [(receiver: Int, bytes: [UInt8])] = []
    private var isSent: Set<[UInt8]> = []
    private var isDelivered: Set<[UInt8]> = []
    private var packetNumber: UInt64 = 0

    private static let keys: [[UInt8]] = [
        (0..<32).map { $0 &* 7 &+ 1 }, (0..<32).map { $0 &* 11 &+ 3 }, (0..<32).map { $0 &* 13 &+ 5 },
    ]
    private static let publicKeys = keys.map { key in
        var bytes = [UInt8](repeating: 0, count: 32)
        bytes.edit { bytes in key.read { MutatingCryptography().derivePublicKey(of: $0, into: &bytes) } }
        return bytes.read { PublicKey($0) }
    }
    private static let addresses: [IPAddress] = [.v4(IPv4Address(10, 9, 0, 1)), .v4(IPv4Address(10, 9, 0, 2))]
    /// Lengths of time at which something happens, in milliseconds.
    private static let intervals: [UInt64] = [
        1, 25, 1000, 5334, 10_000, 15_400, 60_000, 120_000, 165_000, 180_000, 540_000, 86_400_000,
    ]

    init() {
        let primitives = [MutatingCryptography(), MutatingCryptography()]
        var next = 0
        network = SimulatedNetwork(seed: 1) {
            defer { next += 1 }
            return primitives[next]
        }
        network.keepsLog = false
        // Their real addresses are not those that they send to.
        machines = [
            network.addMachine(.v4(IPv4Address(192, 0, 2, 1))), network.addMachine(.v4(IPv4Address(192, 0, 2, 2))),
        ]
        self.primitives = primitives
        for own in 0..<2 {
            Self.keys[own].read { machines[own].device.setPrivateKey($0, at: network.clock.now) }
            peers.append(addPeer(of: own))
        }
    }

    private func addPeer(of own: Int) -> PeerIndex {
        guard let peer = machines[own].device.addPeer(Self.publicKeys[1 - own]) else { fatalError("no peer") }
        machines[own].device.setEndpoint(endpoint(of: 1 - own, port: 1), of: peer)
        machines[own].device.addAllowedIP(IPPrefix(host: Self.addresses[1 - own]), for: peer)
        return peer
    }

    /// Where machine `number` seems to be.
    private func endpoint(of number: Int, port: UInt16) -> Endpoint {
        Endpoint(address: .v4(IPv4Address(198, 51, 100, UInt8(number))), port: port)
    }

    // MARK: Operations

    mutating func run(_ program: inout Program) {
        while !program.isAtEnd { step(&program) }
    }

    private mutating func step(_ program: inout Program) {
        let operation = program.byte()
        let number = operation & 1
        switch operation >> 1 % 20 {
        case 0, 1: sendPacket(from: number, length: program.byte())
        case 2: advance(Self.intervals[program.byte() % Self.intervals.count])
        case 3, 4: exchange()
        case 5: change(program.byte(), program.byte()) { _ in }
        case 6:
            let (offset, bits) = (program.byte() * 3, UInt8(program.byte()))
            change(program.byte(), 1) { if !$0.isEmpty { $0[offset % $0.count] ^= bits } }
        case 7:
            let length = program.byte()
            change(program.byte(), 1) { $0 = Array($0.prefix(length)) }
        case 8:
            let tail = program.bytes(program.byte())
            change(program.byte(), 1) { $0 += tail }
        case 9: deliver(program.bytes(program.byte()), to: number, port: 1)
        case 10: mutate(number, offset: program.byte(), bits: UInt8(program.byte()))
        case 11: flood(program.byte())
        case 12: setLink(number, up: program.byte() & 1 == 1)
        case 13: setPresharedKey(number, UInt8(program.byte() & 1))
        case 14: setPrivateKey(number, program.byte())
        case 15: replacePeer(of: number)
        case 16: setKeepalive(number, program.byte())
        case 17: train(program.byte(), count: program.byte())
        case 18: transmit(program.bytes(program.byte()), from: number)
        default: pool.removeAll()
        }
        check()
    }

    private mutating func sendPacket(from number: Int, length: Int) {
        packetNumber += 1
        let payload = (0..<8).map { UInt8(truncatingIfNeeded: packetNumber >> ($0 * 8)) }
        let packet = InnerPacket.udp(
            from: Self.addresses[number], to: Self.addresses[1 - number],
            payload: payload + [UInt8](repeating: 0x55, count: length * 6), trafficClass: UInt8(length & 3))
        isSent.insert(packet)
        transmit(packet, from: number)
    }

    private mutating func transmit(_ packet: [UInt8], from number: Int) {
        isSent.insert(packet)
        network.send(packet, from: machines[number])
        settle()
    }

    private mutating func advance(_ milliseconds: UInt64) {
        // Persistent keepalives every second for a day would take too long.
        let end = network.clock.now + .milliseconds(milliseconds)
        for _ in 0..<200 {
            guard let next = network.nextTime(), next <= end else { break }
            run(until: next)
        }
        network.suspend(for: end.since(network.clock.now))
        settle()
    }

    /// Delivers what there is, and the answers, for some rounds.
    private mutating func exchange() {
        for _ in 0..<6 where !pool.isEmpty {
            let datagrams = pool
            pool.removeAll()
            for datagram in datagrams { deliver(datagram.bytes, to: datagram.receiver, port: 1) }
        }
    }

    /// Delivers a datagram of the pool after `change`; a port other than 1 lets its sender roam.
    private mutating func change(_ index: Int, _ port: Int, _ change: (inout [UInt8]) -> Void) {
        guard !pool.isEmpty else { return }
        var (receiver, bytes) = pool[pool.count - 1 - index % pool.count]
        change(&bytes)
        // The highest bit sends it back to where it came from.
        if index & 0x80 != 0 { receiver = 1 - receiver }
        deliver(bytes, to: receiver, port: UInt16(port & 0x7f))
    }

    private mutating func mutate(_ number: Int, offset: Int, bits: UInt8) {
        primitives[number].mutation = MutatingCryptography.Mutation(offset: offset, bits: bits)
    }

    private mutating func flood(_ index: Int) {
        guard !pool.isEmpty else { return }
        let (receiver, bytes) = pool[pool.count - 1 - index % pool.count]
        for port in 0..<520 as Range<UInt16> {
            inject(bytes, to: receiver, port: port)
        }
        settle()
    }

    private mutating func setLink(_ number: Int, up: Bool) {
        machines[number].device.setLink(up: up, at: network.clock.now)
        settle()
    }

    private mutating func setPresharedKey(_ number: Int, _ value: UInt8) {
        let key = [UInt8](repeating: value, count: 32)
        key.read { machines[number].device.setPresharedKey($0, of: peers[number]) }
    }

    private mutating func setPrivateKey(_ number: Int, _ choice: Int) {
        let now = network.clock.now
        switch choice % 4 {
        case 0: machines[number].device.removePrivateKey(at: now)
        case 1: Self.keys[2].read { machines[number].device.setPrivateKey($0, at: now) }
        default: Self.keys[number].read { machines[number].device.setPrivateKey($0, at: now) }
        }
        settle()
    }

    private mutating func replacePeer(of number: Int) {
        machines[number].device.removePeer(peers[number])
        peers[number] = addPeer(of: number)
        settle()
    }

    private mutating func setKeepalive(_ number: Int, _ seconds: Int) {
        let interval = seconds == 0 ? nil : Interval.seconds(UInt64(seconds))
        let starts = machines[number].device.setPersistentKeepalive(
            interval, of: peers[number], at: network.clock.now)
        machines[number].device.peerConfigured(peers[number], startsKeepalives: starts)
        settle()
    }

    /// Delivers the newest datagrams for one machine as one train: copies of one, or as many as have its length.
    private mutating func train(_ index: Int, count: Int) {
        guard !pool.isEmpty else { return }
        let (receiver, first) = pool[pool.count - 1 - index % pool.count]
        var messages = pool.filter { $0.receiver == receiver && $0.bytes.count == first.count }.map(\.bytes)
        messages += [[UInt8]](repeating: first, count: count % 100)
        messages = Array(messages.prefix(DeliveredPackets.capacity))
        guard !first.isEmpty else { return }
        var buffer = messages.flatMap(\.self)
        var delivered = DeliveredPackets()
        let train = MessageTrain(offset: 0, count: messages.count, stride: first.count, lastLength: first.count)
        let path = Path(remote: endpoint(of: 1 - receiver, port: 1))
        buffer.edit {
            machines[receiver].device.receive(
                train, in: &$0, from: path, trafficClass: UInt8(count & 3), at: network.clock.now,
                delivering: &delivered)
        }
        for packet in 0..<delivered.count { check(Array(buffer[delivered[packet]])) }
        settle()
    }

    // MARK: Below operations

    private mutating func deliver(_ bytes: [UInt8], to receiver: Int, port: UInt16) {
        inject(bytes, to: receiver, port: port)
        settle()
    }

    private mutating func inject(_ bytes: [UInt8], to receiver: Int, port: UInt16) {
        network.inject(
            bytes, from: endpoint(of: 1 - receiver, port: port), to: machines[receiver], trafficClass: UInt8(port & 3))
    }

    private mutating func settle() {
        run(until: network.clock.now)
    }

    private mutating func run(until time: Instant) {
        do {
            try network.run(until: time)
        } catch {
            fatalError("\(error)")
        }
        for datagram in network.takeOutside() {
            let isFromFirst = datagram.source.address == .v4(IPv4Address(192, 0, 2, 1))
            pool.append((isFromFirst ? 1 : 0, datagram.bytes))
        }
        if pool.count > 200 { pool.removeFirst(pool.count - 100) }
    }

    /// What came out of a tunnel went into one, and comes out once. A peer that meddles with what it seals is excused, but
    /// even its packets must be whole and bear its address.
    private mutating func check() {
        for machine in machines {
            for packet in machine.delivered { check(packet) }
            machine.forgetDelivered()
        }
    }

    private mutating func check(_ packet: [UInt8]) {
        let header = packet.read { try? IPHeader(parsing: $0) }
        require(header?.totalLength == packet.count, "a delivered packet is whole")
        require(header.map { Self.addresses.contains($0.source) } ?? false, "a delivered packet bears a peer's address")
        if primitives.contains(where: { $0.hasMutated }) { return }
        var marked = packet
        require(isSent.contains(packet) || isSentWithoutMark(&marked), "a delivered packet was sent")
        // What the program itself wrote into the TUN may be equal packets.
        if packet.count >= 36, packet[28] != 0 || packet[29] != 0 {
            require(isDelivered.insert(packet).inserted || packet[1] == 3, "a packet is delivered once")
        }
    }

    /// True when the packet was sent as ECT(0) or ECT(1): the outer header may have said that there was congestion.
    private func isSentWithoutMark(_ packet: inout [UInt8]) -> Bool {
        for codepoint in [1, 2] as [UInt8] {
            packet[1] = packet[1] & ~3 | codepoint
            packet[10] = 0
            packet[11] = 0
            var sum = InternetChecksum()
            packet.read { sum.add($0.extracting(first: 20)) }
            packet[10] = UInt8(sum.checksum >> 8)
            packet[11] = UInt8(sum.checksum & 0xff)
            if isSent.contains(packet) { return true }
        }
        return false
    }
}
