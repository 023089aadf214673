import ByteAccess
import IPPacket
public import Provider

extension Device {
    /// The next thing for the host to do at `now`, or nil when nothing is left. Messages are written to `output`, which must
    /// hold the largest packet that can wait for a session and ``messageOverhead`` more.
    ///
    /// Between two calls the host may hand over packets and datagrams: an expensive handshake is one call's work at most.
    public mutating func nextAction(
        into output: inout MutableRawSpan, at now: Instant, wallClock: WallClockTime
    ) -> Action? {
        expireTimers(at: now)
        if !reports.isEmpty { return .report(reports.removeFirst()) }
        while let index = peersWithWork.first {
            let peer = peer(index)
            if let action = nextAction(of: peer, into: &output, at: now, wallClock: wallClock) { return action }
            peersWithWork.removeFirst()
            peer.pending.remove(.queued)
        }
        let isUnderLoad = handshakes.isUnderLoad(at: now)
        guard let message = handshakes.takeFirst() else { return nil }
        return process(message, isUnderLoad: isUnderLoad, into: &output, at: now) ?? .nothing
    }

    private mutating func expireTimers(at now: Instant) {
        let peers = peers
        while let first = deadlines.first(actual: { peers[Int($0)]?.timers.deadline }), first.deadline <= now {
            let peer = peer(PeerIndex(rawValue: first.owner))
            while let expiry = peer.timers.nextExpiry(at: now) { handle(expiry, of: peer) }
        }
    }

    private mutating func handle(_ expiry: PeerTimers.Expiry, of peer: Peer) {
        switch expiry {
        case .retransmitInitiation:
            // The way to the peer may have changed: let the kernel choose the source again.
            peer.path?.source = nil
            schedule(.retransmit, for: peer)
        case .giveUp:
            dropStagedPackets(of: peer)
            report(.handshakeGivenUp(peer.index))
        case .sendKeepalive, .sendPersistentKeepalive:
            schedule(.keepalive, for: peer)
        case .startHandshake:
            peer.path?.source = nil
            schedule(.initiate, for: peer)
        case .zeroKeyMaterial:
            dropSessions(of: peer)
        }
    }

    /// The next thing that `peer` has to do, or nil when nothing is left.
    private mutating func nextAction(
        of peer: Peer, into output: inout MutableRawSpan, at now: Instant, wallClock: WallClockTime
    ) -> Action? {
        if peer.pending.contains(.stampHandshake) {
            peer.pending.remove(.stampHandshake)
            peer.lastHandshake = wallClock
            return .report(.handshakeCompleted(peer.index))
        }
        if peer.pending.contains(.keepalive) || peer.pending.contains(.flush) {
            if let action = sendWaiting(of: peer, into: &output, at: now) { return action }
        }
        let initiations = peer.pending.intersection([.retransmit, .initiate])
        if !initiations.isEmpty {
            peer.pending.subtract(initiations)
            return initiate(
                with: peer, isRetransmission: initiations.contains(.retransmit), into: &output, at: now,
                wallClock: wallClock)
        }
        return nil
    }

    /// Sends one staged packet, or an empty message when one is due and nothing is staged.
    ///
    /// - Returns: Nil when nothing waits any more, or when there is no session: a handshake is scheduled then.
    private mutating func sendWaiting(of peer: Peer, into output: inout MutableRawSpan, at now: Instant) -> Action? {
        let isKeepalive = peer.staged.isEmpty
        guard !isKeepalive || peer.pending.contains(.keepalive) else {
            peer.pending.remove(.flush)
            return nil
        }
        guard let path = peer.path, let session = peer.sessions.current, session.isAlive(at: now),
            let counter = session.reserveCounters(1)
        else {
            peer.pending.subtract([.keepalive, .flush])
            peer.pending.insert(.initiate)
            return nil
        }
        peer.pending.remove(.keepalive)
        let packet = takeStagedPacket(of: peer) ?? []
        if peer.staged.isEmpty { peer.pending.remove(.flush) } else { peer.pending.insert(.flush) }
        let trafficClass = (try? IPHeader(parsing: packet.span.octets))?.trafficClass ?? 0
        let transmission = Transmission(
            peer: peer.index, path: path, trafficClass: Self.outerTrafficClass(forInner: trafficClass))
        let keys = SealingKeys(session: session, firstCounter: counter, mtu: mtu)
        let length = keys.sealSingle(packet.span.octets, into: &output, using: cryptography)
        messageSent(to: peer, under: session, length: length, isData: !isKeepalive, at: now)
        return .send(length: length, transmission)
    }

    private mutating func takeStagedPacket(of peer: Peer) -> [UInt8]? {
        guard let packet = peer.staged.takeFirst() else { return nil }
        stagedBytes -= packet.count
        return packet
    }

    mutating func dropStagedPackets(of peer: Peer) {
        stagedBytes -= peer.staged.byteCount
        drops.add(.stagedPacketDropped, peer.staged.removeAll())
    }

    /// Wipes the sessions and the handshake of `peer`.
    mutating func dropSessions(of peer: Peer) {
        clearHandshake(of: peer)
        let dropped = peer.sessions.removeAll()
        forget((dropped.0, dropped.1))
        forget((dropped.2, nil))
    }

    /// Keeps an event until the host asks. When events come faster than they are read, the newest ones are lost.
    mutating func report(_ event: Event) {
        guard reports.count < 64, !reports.contains(event) else { return }
        reports.append(event)
    }
}
