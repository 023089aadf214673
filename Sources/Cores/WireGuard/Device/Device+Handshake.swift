import ByteAccess
import Provider

extension Device {
    /// Writes an initiation for `peer` to `output`.
    ///
    /// - Parameter isRetransmission: The handshake timer ran out: the tries of this handshake go on being counted.
    /// - Returns: What to send, or nil when none is due or possible.
    mutating func initiate(
        with peer: Peer, isRetransmission: Bool, into output: inout MutableRawSpan, at now: Instant,
        wallClock: WallClockTime
    ) -> Action? {
        if !isRetransmission { peer.timers.handshakeStarted() }
        guard identity != nil, peer.hasUsableKeys, let path = peer.path else { return nil }
        if let last = peer.lastHandshakeSent, now.since(last) < ProtocolConstants.rekeyTimeout {
            if isRetransmission || !peer.staged.isEmpty {
                // A response went out shortly before, and nobody has used its session yet. Should that stay so, the retry or
                // the packets that wait still need a handshake.
                peer.timers.initiationPostponed(after: last, jitter: jitter())
                noteDeadline(of: peer)
            }
            return nil
        }
        guard write(initiationFor: peer, into: &output, wallClock: wallClock) else { return nil }
        var message = output.slice(0..<InitiationLayout.length)
        peer.cookies.authenticate(&message, mac1: InitiationLayout.mac1, recipient: peer.publicKey, at: now)
        handshakeMessageSent(to: peer, length: InitiationLayout.length, at: now)
        peer.timers.initiationSent(at: now, jitter: jitter())
        noteDeadline(of: peer)
        return .send(
            length: InitiationLayout.length,
            Transmission(peer: peer.index, path: path, trafficClass: ProtocolConstants.handshakeTrafficClass))
    }

    private mutating func write(
        initiationFor peer: Peer, into output: inout MutableRawSpan, wallClock: WallClockTime
    ) -> Bool {
        defer { scrubStack() }
        clearHandshake(of: peer)
        let localIndex = unusedIndex()
        let timestamp = Timestamp(wallClock, after: peer.lastTimestampSent)
        let isWritten: Bool
        switch identity {
        case .none:
            isWritten = false
        case .some(let identity):
            isWritten = peer.handshake.writeInitiation(
                into: &output, localIndex: localIndex, identity: identity, responder: peer.publicKey,
                staticStatic: peer.staticStatic, timestamp: timestamp, entropy: &entropy, using: cryptography)
        }
        guard isWritten else { return false }
        peer.lastTimestampSent = timestamp
        indices.set(localIndex, to: .handshake(peer.index))
        return true
    }

    /// Processes one queued handshake message.
    ///
    /// - Returns: What to send for it, if anything.
    mutating func process(
        _ message: HandshakeQueue.Message, isUnderLoad: Bool, into output: inout MutableRawSpan, at now: Instant
    ) -> Action? {
        defer { scrubStack() }
        let bytes = message.bytes.span.octets.extracting(0..<message.length)
        let isInitiation = message.length == InitiationLayout.length
        let mac1 = isInitiation ? InitiationLayout.mac1 : ResponseLayout.mac1
        if isUnderLoad {
            let mac2 = mac1 + MessageAuthenticationCode.byteCount
            let remote = message.path.remote
            guard cookieChecker?.hasValidMAC2(bytes, mac2: mac2, from: remote, at: now, entropy: &entropy) ?? false
            else {
                return sendCookie(for: bytes, mac1: mac1, path: message.path, into: &output, at: now)
            }
            guard rateLimiter.allows(remote.address, at: now) else {
                drops.add(.rateLimited)
                return nil
            }
        }
        if isInitiation { return answer(bytes, from: message.path, into: &output, at: now) }
        finishHandshake(bytes, from: message.path, at: now)
        return nil
    }

    private mutating func sendCookie(
        for message: RawSpan, mac1: Int, path: Path, into output: inout MutableRawSpan, at now: Instant
    ) -> Action? {
        // Both messages have their sender's index at the same place.
        let sender = message.littleEndianUInt32(at: InitiationLayout.sender)
        cookieChecker?.writeReply(
            to: message, sender: sender, mac1: mac1, from: path.remote, at: now, entropy: &entropy, into: &output,
            using: cryptography)
        return .send(
            length: CookieReplyLayout.length, Transmission(peer: nil, path: path, trafficClass: 0))
    }

    /// Reads an initiation and writes the response to `output`.
    private mutating func answer(
        _ message: RawSpan, from path: Path, into output: inout MutableRawSpan, at now: Instant
    ) -> Action? {
        guard var responder = readInitiation(message), let index = slotsByKey[responder.initiator] else {
            drops.add(.invalidHandshake)
            return nil
        }
        let peer = peer(index)
        guard peer.hasUsableKeys,
            let timestamp = responder.readTimestamp(
                of: message, staticStatic: peer.staticStatic, using: cryptography)
        else {
            drops.add(.invalidHandshake)
            return nil
        }
        if let greatest = peer.greatestTimestamp, timestamp <= greatest {
            drops.add(.replayedInitiation)
            report(.initiationReplayed(index))
            return nil
        }
        if let last = peer.lastInitiationConsumed, now.since(last) < ProtocolConstants.initiationInterval {
            drops.add(.replayedInitiation)
            return nil
        }
        peer.greatestTimestamp = timestamp
        peer.lastInitiationConsumed = now
        // As in Linux, answering ends a handshake of our own that is under way, so that two peers that start at the same
        // moment do not both become the one who renews the session. The retry comes at a random time.
        clearHandshake(of: peer)
        roam(peer, to: path)
        peer.receivedBytes &+= UInt64(message.byteCount)
        peer.timers.authenticatedMessageReceived(at: now)

        let localIndex = unusedIndex()
        guard
            let keys = responder.writeResponse(
                into: &output, localIndex: localIndex, presharedKey: peer.presharedKey, entropy: &entropy,
                using: cryptography)
        else {
            drops.add(.invalidHandshake)
            return nil
        }
        var response = output.slice(0..<ResponseLayout.length)
        peer.cookies.authenticate(&response, mac1: ResponseLayout.mac1, recipient: peer.publicKey, at: now)
        let session = Keypair(keys, created: now)
        forget(peer.sessions.addResponded(session))
        indices.set(localIndex, to: .session(index, session))
        peer.timers.sessionDerived(at: now)
        handshakeMessageSent(to: peer, length: ResponseLayout.length, at: now)
        noteDeadline(of: peer)
        return .send(
            length: ResponseLayout.length,
            Transmission(peer: index, path: path, trafficClass: ProtocolConstants.handshakeTrafficClass))
    }

    private func readInitiation(_ message: RawSpan) -> ResponderHandshake? {
        switch identity {
        case .none: nil
        case .some(let identity):
            ResponderHandshake(reading: message, identity: identity, using: cryptography)
        }
    }

    /// Reads the response to an initiation of ours.
    private mutating func finishHandshake(_ message: RawSpan, from path: Path, at now: Instant) {
        let receiver = message.littleEndianUInt32(at: ResponseLayout.receiver)
        guard case .handshake(let index)? = indices[receiver] else { return drops.add(.invalidHandshake) }
        let peer = peer(index)
        guard let keys = readResponse(message, from: peer) else { return drops.add(.invalidHandshake) }
        let session = Keypair(keys, created: now)
        forget(peer.sessions.addInitiated(session))
        indices.set(receiver, to: .session(index, session))
        roam(peer, to: path)
        peer.receivedBytes &+= UInt64(message.byteCount)
        peer.timers.authenticatedMessageReceived(at: now)
        peer.timers.sessionDerived(at: now)
        handshakeCompleted(with: peer)
        noteDeadline(of: peer)
        // The first message under the new key confirms it to the responder: what waits, or else an empty one.
        schedule(.keepalive, for: peer)
    }

    private func readResponse(_ message: RawSpan, from peer: Peer) -> SessionKeys? {
        switch identity {
        case .none: nil
        case .some(let identity):
            peer.handshake.readResponse(
                message, identity: identity, presharedKey: peer.presharedKey, using: cryptography)
        }
    }

    private mutating func handshakeMessageSent(to peer: Peer, length: Int, at now: Instant) {
        peer.lastHandshakeSent = now
        peer.sentBytes &+= UInt64(length)
        peer.timers.authenticatedMessageSent(at: now)
    }

    /// Forgets the handshake of ours that is under way.
    mutating func clearHandshake(of peer: Peer) {
        if let index = peer.handshake.localIndex { indices.remove(index) }
        peer.handshake.clear()
    }

    /// Lets the indices of dropped sessions name nothing.
    mutating func forget(_ dropped: SessionRotation.Dropped) {
        if let index = dropped.0 { indices.remove(index) }
        if let index = dropped.1 { indices.remove(index) }
    }

    private mutating func unusedIndex() -> UInt32 {
        indices.unusedIndex(entropy: &entropy)
    }
}
