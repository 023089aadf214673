import ByteAccess
import IPPacket
public import Provider

extension Device {
    /// Takes a train of datagrams that came from one place: opens what is data, in place, and keeps handshake messages for
    /// ``nextAction(into:at:wallClock:)``.
    ///
    /// - Parameters:
    ///   - train: At most ``DeliveredPackets/capacity`` datagrams in `buffer`. A single datagram is a train of one.
    ///   - path: Where the train came from and the local end it came to.
    ///   - trafficClass: The outer header's TOS or traffic class.
    ///   - packets: Receives where the inner packets lie that are to be written to the TUN, in order.
    public mutating func receive(
        _ train: MessageTrain, in buffer: inout MutableRawSpan, from path: Path, trafficClass: UInt8, at now: Instant,
        delivering packets: inout DeliveredPackets
    ) {
        precondition(train.count <= DeliveredPackets.capacity, "a train that is too long")
        packets.removeAll()
        // Taken out rather than copied: two owners of the array would make the first append allocate.
        var orders: [OpeningOrder] = []
        swap(&orders, &openingOrders)
        begin(train, in: buffer.bytes, from: path, at: now, orders: &orders)
        for index in orders.indices {
            orders[index].open(in: &buffer, using: cryptography)
            finish(
                orders[index], in: &buffer, from: path, trafficClass: trafficClass, at: now, delivering: &packets)
        }
        orders.removeAll(keepingCapacity: true)
        openingOrders = orders
    }

    /// Takes a train apart: the first part of ``receive(_:in:from:trafficClass:at:delivering:)``, for hosts that open elsewhere.
    /// Handshake messages are kept for ``nextAction(into:at:wallClock:)``.
    ///
    /// - Parameter orders: Receives the runs of data messages that are to be opened and then given to
    ///   ``finish(_:in:from:trafficClass:at:delivering:)``, in order.
    public mutating func begin(
        _ train: MessageTrain, in buffer: RawSpan, from path: Path, at now: Instant, orders: inout [OpeningOrder]
    ) {
        precondition(train.count <= DeliveredPackets.capacity, "a train that is too long")
        guard isUp else { return drops.add(.linkDown, train.count) }
        var index = 0
        while index < train.count {
            let datagram = buffer.extracting(train.range(of: index))
            guard let type = MessageType(of: datagram) else {
                drops.add(.malformedMessage)
                index += 1
                continue
            }
            guard type == .data else {
                queueHandshake(datagram, type, from: path, at: now)
                index += 1
                continue
            }
            let run = Self.run(of: train, from: index, in: buffer)
            index += run.count
            let receiver = datagram.littleEndianUInt32(at: DataLayout.receiver)
            guard case .session(let peer, let session)? = indices[receiver] else {
                drops.add(.unknownReceiver, run.count)
                continue
            }
            guard session.isAlive(at: now) else {
                drops.add(.expiredSession, run.count)
                continue
            }
            orders.append(OpeningOrder(run, from: peer, under: session))
        }
    }

    /// The part of `train` from message `start`, a data message, that is for the same session: at most 64 messages.
    private static func run(of train: MessageTrain, from start: Int, in buffer: RawSpan) -> MessageTrain {
        let first = train.range(of: start)
        let receiver = buffer.littleEndianUInt32(at: first.lowerBound + DataLayout.receiver)
        var end = start + 1
        while end < train.count, end - start < 64 {
            let message = buffer.extracting(train.range(of: end))
            guard MessageType(of: message) == .data,
                message.littleEndianUInt32(at: DataLayout.receiver) == receiver
            else { break }
            end += 1
        }
        return MessageTrain(
            offset: first.lowerBound, count: end - start, stride: train.stride,
            lastLength: train.range(of: end - 1).count)
    }

    /// Judges the messages of an opened run and the packets in them: the last part of
    /// ``receive(_:in:from:trafficClass:at:delivering:)``.
    ///
    /// - Parameter packets: Where the packets lie in `buffer` that are to be written to the TUN is added to it.
    public mutating func finish(
        _ order: OpeningOrder, in buffer: inout MutableRawSpan, from path: Path, trafficClass: UInt8, at now: Instant,
        delivering packets: inout DeliveredPackets
    ) {
        let (run, session, authentic) = (order.run, order.session, order.authentic)
        // The session may have ended while the messages were opened.
        guard case .session(let index, let current)? = indices[session.localIndex], current === session else {
            return drops.add(.unknownReceiver, run.count)
        }
        let peer = peer(index)
        var accepted = 0
        var hasData = false
        for message in 0..<run.count {
            let range = run.range(of: message)
            guard authentic & (1 << UInt64(message)) != 0 else {
                drops.add(.notAuthentic)
                continue
            }
            let counter = buffer.bytes.littleEndianUInt64(at: range.lowerBound + DataLayout.counter)
            guard counter < ProtocolConstants.rejectAfterMessages else {
                drops.add(.expiredSession)
                continue
            }
            guard session.window.accept(counter) else {
                drops.add(.replayedCounter)
                continue
            }
            accepted += 1
            guard range.count > DataLayout.minimumLength else {
                peer.receivedBytes &+= UInt64(range.count)
                continue
            }
            hasData = true
            let plaintext =
                range.lowerBound + DataLayout.headerLength..<range.upperBound - DataLayout.tagLength
            if let packet = accept(plaintext, in: &buffer, from: peer, outerTrafficClass: trafficClass) {
                peer.receivedBytes &+= UInt64(range.count)
                packets.append(packet)
            }
        }
        guard accepted > 0 else { return }
        messagesReceived(from: peer, under: session, path: path, hasData: hasData, at: now)
    }

    /// Checks a decrypted packet: an IP packet, no longer than what was sealed, from an address that is this peer's.
    ///
    /// - Returns: The packet without its padding, or nil when it is dropped.
    private mutating func accept(
        _ plaintext: Range<Int>, in buffer: inout MutableRawSpan, from peer: Peer, outerTrafficClass: UInt8
    ) -> Range<Int>? {
        guard let header = try? IPHeader(parsing: buffer.bytes.extracting(plaintext)) else {
            drops.add(.malformedPacket)
            return nil
        }
        guard allowedIPs.peer(for: header.source) == peer.index else {
            drops.add(.sourceNotAllowed)
            return nil
        }
        let packet = plaintext.lowerBound..<plaintext.lowerBound + header.totalLength
        let outer = ExplicitCongestionNotification(trafficClass: outerTrafficClass)
        if outer == .ce {
            var bytes = buffer.slice(packet)
            _ = ExplicitCongestionNotification.decapsulate(outer: outer, in: &bytes)
        }
        return packet
    }

    /// Does what follows from authenticated data messages having come in.
    private mutating func messagesReceived(
        from peer: Peer, under session: Keypair, path: Path, hasData: Bool, at now: Instant
    ) {
        roam(peer, to: path)
        if case .confirmed(let dropped) = peer.sessions.received(under: session) {
            if let dropped { indices.remove(dropped) }
            handshakeCompleted(with: peer)
            schedule(.flush, for: peer)
        }
        if let current = peer.sessions.current, current.isDueForRekeyOnReceive(at: now),
            !peer.hasStartedLastMinuteHandshake
        {
            peer.hasStartedLastMinuteHandshake = true
            schedule(.initiate, for: peer)
        }
        peer.timers.authenticatedMessageReceived(at: now)
        if hasData { peer.timers.dataReceived(at: now) }
        noteDeadline(of: peer)
    }

    /// Notes where an authenticated message came from: answers go there.
    mutating func roam(_ peer: Peer, to path: Path) {
        guard peer.path != path else { return }
        // The same two addresses over another interface: routes changed while packets were under way. What was noted first
        // stays, so that looking at the routes shows that it is no longer right.
        if let old = peer.path, old.remote == path.remote, let address = old.source?.address,
            address == path.source?.address
        {
            return
        }
        var path = path
        if let address = path.source?.address, address == peer.distrustedSource { path.source = nil }
        if peer.path?.remote != path.remote { report(.endpointChanged(peer.index)) }
        peer.path = path
    }

    /// Does what follows from a handshake being over, at either end.
    mutating func handshakeCompleted(with peer: Peer) {
        peer.timers.handshakeCompleted()
        peer.pending.subtract([.initiate, .retransmit])
        peer.hasStartedLastMinuteHandshake = false
        schedule(.stampHandshake, for: peer)
    }

    /// Keeps a handshake message whose first authentication code fits for later; answers to ours that cost little are
    /// handled at once.
    private mutating func queueHandshake(_ message: RawSpan, _ type: MessageType, from path: Path, at now: Instant) {
        switch type {
        case .cookieReply:
            readCookieReply(message, at: now)
        case .initiation:
            queueHandshake(message, mac1: InitiationLayout.mac1, from: path, at: now)
        case .response:
            queueHandshake(message, mac1: ResponseLayout.mac1, from: path, at: now)
        case .data:
            preconditionFailure("data is not a handshake message")
        }
    }

    private mutating func queueHandshake(_ message: RawSpan, mac1: Int, from path: Path, at now: Instant) {
        guard cookieChecker?.hasValidMAC1(message, mac1: mac1) ?? false else { return drops.add(.invalidMAC1) }
        guard handshakes.append(message, from: path) else { return drops.add(.handshakeQueueFull) }
        _ = handshakes.isUnderLoad(at: now)
    }

    private mutating func readCookieReply(_ reply: RawSpan, at now: Instant) {
        let receiver = reply.littleEndianUInt32(at: CookieReplyLayout.receiver)
        guard let entry = indices[receiver] else { return drops.add(.invalidCookieReply) }
        let peer = peer(entry.peer)
        if !peer.cookies.readReply(reply, from: peer.publicKey, at: now, using: cryptography) {
            drops.add(.invalidCookieReply)
        }
    }
}
