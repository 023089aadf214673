import ByteAccess
import IPPacket
public import Provider

/// What became of a packet from the TUN.
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
    ///   - packet: An IP packet with finished checksums.
    ///   - output: At least ``messageOverhead`` bytes longer than the packet, and at least 1,280 bytes.
    public mutating func transmit(
        _ packet: RawSpan, into output: inout MutableRawSpan, at now: Instant
    ) -> TransmitOutcome {
        guard isUp else { return drop(.linkDown) }
        guard let header = try? IPHeader(parsing: packet) else { return drop(.malformedTUNPacket) }
        guard let index = allowedIPs.peer(for: header.destination) else {
            return reject(packet, .noPeer, into: &output, at: now)
        }
        let peer = peer(index)
        guard let path = peer.path else { return reject(packet, .noEndpoint, into: &output, at: now) }
        let content = packet.extracting(0..<header.totalLength)
        if isOwnDatagram(content, header, to: path.remote) { return drop(.routingLoop) }
        guard peer.staged.isEmpty, let session = peer.sessions.current, session.isAlive(at: now),
            let counter = session.reserveCounters(1)
        else {
            stage(content, for: peer)
            return .staged
        }
        let length = seal(content, under: session, counter: counter, into: &output)
        messageSent(to: peer, under: session, length: length, isData: true, at: now)
        let transmission = Transmission(
            peer: index, path: path, trafficClass: Self.outerTrafficClass(forInner: header.trafficClass))
        return .send(MessageTrain(offset: 0, length: length), transmission)
    }

    /// Seals one packet, or nothing for a keepalive, as a data message at the start of `output`. Returns its length.
    func seal(_ packet: RawSpan, under session: Keypair, counter: UInt64, into output: inout MutableRawSpan) -> Int {
        let padded = Self.paddedLength(packet.byteCount, mtu: mtu)
        let length = DataLayout.headerLength + padded + DataLayout.tagLength
        output.storeLittleEndian(MessageType.data.rawValue, at: 0)
        output.storeLittleEndian(session.remoteIndex, at: DataLayout.receiver)
        output.storeLittleEndian(counter, at: DataLayout.counter)
        output.copy(packet, to: DataLayout.headerLength)
        output.zero(from: DataLayout.headerLength + packet.byteCount, count: padded - packet.byteCount)
        session.seal(MessageTrain(offset: 0, length: length), in: &output, using: cryptography)
        return length
    }

    /// Does what follows from an authenticated message being sent.
    mutating func messageSent(to peer: Peer, under session: Keypair, length: Int, isData: Bool, at now: Instant) {
        peer.sentBytes &+= UInt64(length)
        peer.timers.authenticatedMessageSent(at: now)
        if isData { peer.timers.dataSent(at: now, jitter: jitter()) }
        noteDeadline(of: peer)
        if session.isDueForRekeyOnSend(at: now) { schedule(.initiate, for: peer) }
    }

    /// The length that a plaintext is padded to: a multiple of 16, but no more than the MTU, so that padding never makes a
    /// datagram that would not fit (Linux). What is longer than the MTU already is padded by its last part.
    static func paddedLength(_ length: Int, mtu: Int) -> Int {
        guard mtu > 0 else { return length.roundedUp(toMultipleOf: ProtocolConstants.paddingMultiple) }
        let last = length > mtu ? length % mtu : length
        return length - last + min(mtu, last.roundedUp(toMultipleOf: ProtocolConstants.paddingMultiple))
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

    private mutating func stage(_ packet: RawSpan, for peer: Peer) {
        schedule(.flush, for: peer)
        guard stagedBytes + packet.byteCount <= Self.maximumStagedBytes else {
            drops.add(.stagedPacketDropped)
            return
        }
        let before = peer.staged.byteCount
        drops.add(.stagedPacketDropped, peer.staged.append(packet))
        stagedBytes += peer.staged.byteCount - before
    }

    private mutating func drop(_ reason: DropReason) -> TransmitOutcome {
        drops.add(reason)
        return .dropped(reason)
    }

    /// Drops a packet that has no way to go and tells its sender.
    private mutating func reject(
        _ packet: RawSpan, _ reason: DropReason, into output: inout MutableRawSpan, at now: Instant
    ) -> TransmitOutcome {
        drops.add(reason)
        guard unreachableLimiter.allowsOne(at: now),
            let length = ICMPDestinationUnreachable.write(for: packet, reason: .host, into: &output)
        else { return .dropped(reason) }
        return .unreachable(length: length, reason)
    }
}

extension Int {
    /// The smallest multiple of `divisor`, a power of two, that is not below this number.
    func roundedUp(toMultipleOf divisor: Int) -> Int {
        (self + divisor - 1) & ~(divisor - 1)
    }
}
