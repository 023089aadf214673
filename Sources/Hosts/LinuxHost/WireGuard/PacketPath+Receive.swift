internal import ByteAccess
internal import Glibc
internal import IPPacket
internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

// From the peers to the TUN.
extension PacketPath {
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
    ///
    /// Packets of datagrams that came one by one are joined as those of a train are: a path that takes no trains is slow enough.
    private mutating func readOnce(_ family: AddressFamily) throws(TUNError) -> (bytes: Int, hasMore: Bool) {
        let count: Int
        let limit: Int
        switch sockets {
        case .none: return (0, false)
        case .some(let sockets):
            let perTurn = sawTrain ? Self.trainsPerTurn : Self.singlesPerTurn
            limit = sockets.receivesTrains ? perTurn : Self.datagramsPerTurn
            count = sockets.receive(family, into: &received, limit: limit)
        }
        let now = HostClock.now()
        var bytes = 0
        sawTrain = false
        for index in 0..<count {
            guard let datagram = received.datagram(at: index) else { continue }
            bytes += datagram.length
            var train = datagram.train
            train.offset += received.offset(of: index)
            let isLong = train.count >= Self.longTrain
            if train.count > 1 { sawTrain = true }
            while train.count > 0 {
                let part = train.removeFirst(DeliveredPackets.capacity - delivered.count)
                open(part, datagram, at: now)
                if delivered.count == DeliveredPackets.capacity { try deliver() }
            }
            if isLong { try deliver() }
        }
        try deliver()
        return (bytes, count == limit)
    }

    /// Opens the messages of one received train, and adds what is to be delivered.
    private mutating func open(_ train: MessageTrain, _ datagram: ReceivedDatagram, at now: Instant) {
        let before = delivered.count
        Self.open(
            train, datagram, in: &received, by: shared, using: cryptography, orders: &orders, at: now,
            delivering: &delivered)
        guard delivered.count > before else { return }
        deliveredPackets += delivered.count - before
        deliveredBytes += train.length
    }

    /// Hands the packets that were opened to the kernel.
    private mutating func deliver() throws(TUNError) {
        if delivered.count == 0 { return }
        defer { delivered.removeAll() }
        Self.join(delivered, in: &received, by: &joiner)
        for packet in 0..<joiner.count {
            do {
                try Self.write(packet, of: joiner, in: &received, to: tun)
                if joiner[packet].pieces.count > 1 { refusedSuperPackets = 0 }
            } catch .superPacketRefused {
                // The packets of one that is refused are written one by one.
                try Self.writeSeparately(packet, of: joiner, in: &received, to: tun)
                noteRefusal()
            }
        }
    }

    /// Some kernels refuse all of what they promised to take.
    private mutating func noteRefusal() {
        refusedSuperPackets += 1
        guard refusedSuperPackets >= Self.refusalLimit else { return }
        superPacketWrites = .refused(errno: EINVAL)
        joiner.joinsTCP = false
        joiner.joinsUDP = false
    }

    private static func open(
        _ train: MessageTrain, _ datagram: ReceivedDatagram, in received: inout ReceiveBatch,
        by shared: SharedDevice, using cryptography: OpenSSLCryptography, orders: inout [OpeningOrder],
        at now: Instant, delivering packets: inout DeliveredPackets
    ) {
        var bytes = received.allBytes()
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
        _ packets: borrowing DeliveredPackets, in received: inout ReceiveBatch, by joiner: inout PacketJoiner
    ) {
        var bytes = received.allBytes()
        joiner.removeAll()
        for packet in 0..<packets.count { joiner.append(packets[packet], in: &bytes) }
        joiner.finish(in: &bytes)
    }

    private static func write(
        _ packet: Int, of joiner: borrowing PacketJoiner, in received: inout ReceiveBatch,
        to tun: borrowing TUNDevice
    ) throws(TUNError) {
        let storage = received.allBytes()
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
        _ packet: Int, of joiner: borrowing PacketJoiner, in received: inout ReceiveBatch,
        to tun: borrowing TUNDevice
    ) throws(TUNError) {
        let storage = received.allBytes()
        do throws(TUNError) {
            _ = try tun.writeSeparately(packet, of: joiner, in: storage.bytes)
        } catch .linkDown, .packetRefused {
            return
        }
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
