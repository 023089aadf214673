import ByteAccess
public import IPPacket
public import Provider

/// What became of a packet from the TUN.
public enum Admission: Sendable {
    /// Seal it and send it.
    case seal(SealingOrder)
    /// It waits for a session; a handshake is under way.
    case staged
    /// Write the ICMP error of this many bytes, at the start of the output buffer, to the TUN; the packet is dropped.
    case unreachable(length: Int, DropReason)
    /// It is dropped.
    case dropped(DropReason)
}

/// What became of a packet from the TUN, sealing included.
public enum TransmitOutcome: Sendable {
    /// Send the train, which lies in the output buffer.
    case send(MessageTrain, Transmission)
    /// The packet waits for a session; a handshake is under way.
    case staged
    /// Write the ICMP error of this many bytes, at the start of the output buffer, to the TUN; the packet is dropped.
    case unreachable(length: Int, DropReason)
    /// The packet is dropped.
    case dropped(DropReason)
}

extension Device {
    /// The bytes that a message needs more than its packet: header, tag and padding.
    public static var messageOverhead: Int {
        DataLayout.headerLength + DataLayout.tagLength + ProtocolConstants.paddingMultiple - 1
    }

    /// The most bytes that packets waiting for sessions may take, for all peers together.
    static var maximumStagedBytes: Int { 4 << 20 }

    /// Takes a packet from the TUN: finds the peer, seals the packet for it or keeps it until there is a session.
    ///
    /// - Parameters:
    ///   - packet: An IP packet, or a super-packet that `header` describes.
    ///   - output: Room for every segment and ``messageOverhead`` bytes more each, and at least 1,280 bytes. After
    ///     ``limitMessages(to:until:)`` TCP has more segments than it came with: of 1,200 bytes, with their headers.
    public mutating func transmit(
        _ packet: RawSpan, header: VirtioNetworkHeader = VirtioNetworkHeader(), into output: inout MutableRawSpan,
        at now: Instant
    ) -> TransmitOutcome {
        guard let superPacket = try? SuperPacket(parsing: packet, header: header) else {
            return .dropped(dropMalformed())
        }
        switch admit(packet, superPacket, into: &output, at: now) {
        case .seal(let order):
            let sealed = order.seal(packet, into: &output, using: cryptography)
            precondition(sealed.next == nil, "an output buffer without room for the whole packet")
            return .send(sealed.train, order.transmission)
        case .staged: return .staged
        case .unreachable(let length, let reason): return .unreachable(length: length, reason)
        case .dropped(let reason): return .dropped(reason)
        }
    }

    /// Counts a packet from the TUN that is none, or whose header does not fit it.
    public mutating func dropMalformed() -> DropReason {
        drops.add(.malformedTUNPacket)
        return .malformedTUNPacket
    }

    /// Judges a packet from the TUN: the first half of ``transmit(_:header:into:at:)``, for hosts that seal elsewhere.
    ///
    /// - Parameter output: At least 1,280 bytes, for an ICMP error.
    public mutating func admit(
        _ packet: RawSpan, _ superPacket: SuperPacket, into output: inout MutableRawSpan, at now: Instant
    ) -> Admission {
        guard isUp else { return drop(.linkDown) }
        let header = superPacket.ipHeader
        guard let index = allowedIPs.peer(for: header.destination) else {
            return reject(packet, .noPeer, into: &output, at: now)
        }
        let peer = peer(index)
        guard let path = peer.path else { return reject(packet, .noEndpoint, into: &output, at: now) }
        if isOwnDatagram(packet, header, to: path.remote) { return drop(.routingLoop) }
        let cut = peer.isOnNarrowPath(at: now) ? superPacket.cut(to: Self.narrowLength(to: path), packet) : superPacket
        guard peer.staged.isEmpty, let session = peer.sessions.current, session.isAlive(at: now),
            let counter = session.reserveCounters(cut.segmentCount)
        else {
            stage(packet, superPacket, for: peer)
            return .staged
        }
        let order = SealingOrder(
            transmission: Transmission(
                peer: index, path: path, trafficClass: Self.outerTrafficClass(forInner: header.trafficClass)),
            superPacket: cut, keys: SealingKeys(session: session, firstCounter: counter, mtu: mtu))
        let length =
            (cut.segmentCount - 1) * order.keys.messageLength(cut.segmentLength)
            + order.keys.messageLength(cut.lastSegmentLength)
        messageSent(to: peer, under: session, length: length, isData: true, at: now)
        return .seal(order)
    }

    /// Says that trains of the longest messages do not get through to a peer: until `expiry` TCP is cut so that its messages fit
    /// the least MTU of IPv6, 1,280 bytes, with their IP and UDP headers. Nothing is fragmented then.
    public mutating func limitMessages(to peer: PeerIndex, until expiry: Instant) {
        peers[Int(peer.rawValue)]?.narrowPathExpiry = expiry
    }

    /// The longest packet whose message fits 1,280 bytes: with headers of 20 or 40 bytes for IP, 8 for UDP and 32 for the message,
    /// and as padding makes it.
    private static func narrowLength(to path: Path) -> Int {
        path.remote.address.version == .v4 ? 1_216 : 1_200
    }

    /// Does what follows from authenticated messages being sent.
    mutating func messageSent(to peer: Peer, under session: Keypair, length: Int, isData: Bool, at now: Instant) {
        peer.sentBytes &+= UInt64(length)
        peer.distrustedSource = nil
        peer.timers.authenticatedMessageSent(at: now)
        if isData { peer.timers.dataSent(at: now, jitter: jitter()) }
        noteDeadline(of: peer)
        if session.isDueForRekeyOnSend(at: now) { schedule(.initiate, for: peer) }
    }

    /// The outer traffic class of a packet: no DSCP, which would tell about the inside, and the ECN bits with CE replaced by
    /// ECT(0) (RFC 6040, section 4.1, as Linux: congestion so far was not on this path).
    static func outerTrafficClass(forInner trafficClass: UInt8) -> UInt8 {
        ExplicitCongestionNotification(trafficClass: trafficClass).encapsulated.rawValue
    }

    /// True when the packet is a datagram of ours to the very peer that it would be sent to: sealing it again and again would
    /// never end.
    private func isOwnDatagram(_ packet: RawSpan, _ header: IPHeader, to endpoint: Endpoint) -> Bool {
        guard header.destination == endpoint.address, header.protocolNumber == .udp,
            packet.byteCount >= header.headerLength + 8
        else { return false }
        return packet.bigEndianUInt16(at: header.headerLength) == listenPort
            && packet.bigEndianUInt16(at: header.headerLength + 2) == endpoint.port
    }

    /// Keeps a packet, segment by segment, until there is a session.
    private mutating func stage(_ packet: RawSpan, _ superPacket: SuperPacket, for peer: Peer) {
        schedule(.flush, for: peer)
        for index in 0..<superPacket.segmentCount {
            let length = superPacket.length(of: index)
            guard stagedBytes + length <= Self.maximumStagedBytes else {
                drops.add(.stagedPacketDropped, superPacket.segmentCount - index)
                return
            }
            let before = peer.staged.byteCount
            let dropped = peer.staged.append(length: length) { superPacket.writeSegment(index, of: packet, into: &$0) }
            drops.add(.stagedPacketDropped, dropped)
            stagedBytes += peer.staged.byteCount - before
        }
    }

    private mutating func drop(_ reason: DropReason) -> Admission {
        drops.add(reason)
        return .dropped(reason)
    }

    /// Drops a packet that has no way to go and tells its sender.
    private mutating func reject(
        _ packet: RawSpan, _ reason: DropReason, into output: inout MutableRawSpan, at now: Instant
    ) -> Admission {
        drops.add(reason)
        guard unreachableLimiter.allowsOne(at: now),
            let length = ICMPDestinationUnreachable.write(for: packet, reason: .host, into: &output)
        else { return .dropped(reason) }
        return .unreachable(length: length, reason)
    }
}
