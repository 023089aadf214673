public import IPPacket
public import Provider

extension Device {
    // MARK: The device

    /// Sets the private key (32 bytes; clamped here). All sessions and handshakes end and their keys are wiped; handshakes
    /// with the new key may start at once. A peer with the device's own public key is removed. Setting the key that is set
    /// already changes nothing.
    public mutating func setPrivateKey(_ key: RawSpan, at now: Instant) {
        let identity = Identity(privateKey: key, using: cryptography)
        if isOwn(identity.publicKey) { return }
        if let own = slotsByKey[identity.publicKey] { removePeer(own) }
        cookieChecker = CookieChecker(publicKey: identity.publicKey)
        self.identity = consume identity
        identityChanged()
    }

    /// Removes the private key. All sessions and handshakes end; nothing is sent or accepted without one.
    public mutating func removePrivateKey(at now: Instant) {
        identity = nil
        cookieChecker = nil
        identityChanged()
    }

    private mutating func identityChanged() {
        handshakes.removeAll()
        forEachPeer { device, peer in
            device.dropSessions(of: peer)
            peer.lastHandshakeSent = nil
            device.precomputeStaticStatic(of: peer)
            if device.isUp { device.startWaiting(peer) }
        }
        scrubStack()
    }

    /// Tells the device that its link came up or went down. Down ends all sessions; up starts what waits, and what persistent
    /// keepalives call for, at once.
    public mutating func setLink(up: Bool, at now: Instant) {
        guard up != isUp else { return }
        isUp = up
        if !up { handshakes.removeAll() }
        forEachPeer { device, peer in
            if up {
                peer.timers.setPersistentKeepalive(peer.timers.persistentKeepaliveInterval, at: now)
                device.noteDeadline(of: peer)
                device.startWaiting(peer)
            } else {
                device.dropStagedPackets(of: peer)
                device.dropSessions(of: peer)
                peer.timers.stop()
                device.deadlines.remove(peer.index.rawValue)
                peer.lastHandshakeSent = nil
                peer.pending.formIntersection([.queued, .stampHandshake])
            }
        }
    }

    /// Forgets our end of the way to every peer for which `isStillRight` is false, so that the kernel chooses again: after
    /// routes, addresses, the port or the mark changed.
    public mutating func reviewSources(keepingWhere isStillRight: (Path) -> Bool) {
        forEachPeer { _, peer in
            if let path = peer.path, path.source != nil, !isStillRight(path) {
                peer.distrustedSource = path.source?.address
                peer.path?.source = nil
            }
        }
    }

    /// Forgets our end of the way to one peer, because sending from it failed. Returns the path without it.
    public mutating func clearSource(of index: PeerIndex) -> Path? {
        guard let peer = peers[Int(index.rawValue)] else { return nil }
        peer.path?.source = nil
        return peer.path
    }

    // MARK: Peers

    /// The peer that is called `key`, or nil.
    public func peerIndex(of key: PublicKey) -> PeerIndex? {
        slotsByKey[key]
    }

    /// The name of a peer, or nil when it was removed.
    public func publicKey(of index: PeerIndex) -> PublicKey? {
        peers[Int(index.rawValue)]?.publicKey
    }

    /// Adds a peer, or returns the one there is.
    ///
    /// - Returns: Nil when the key is the device's own, or when there are 2^20 peers already.
    public mutating func addPeer(_ key: PublicKey) -> PeerIndex? {
        if let known = slotsByKey[key] { return known }
        guard !isOwn(key), !isFull else { return nil }
        let slot = freeSlots.popLast() ?? UInt32(peers.count)
        let peer = Peer(publicKey: key, index: PeerIndex(rawValue: slot))
        if Int(slot) == peers.count { peers.append(peer) } else { peers[Int(slot)] = peer }
        slotsByKey[key] = peer.index
        peer.previousPeer = lastPeer
        if let lastPeer { self.peer(lastPeer).nextPeer = peer.index } else { firstPeer = peer.index }
        lastPeer = peer.index
        precomputeStaticStatic(of: peer)
        return peer.index
    }

    /// Removes a peer with its allowed IPs and wipes its keys.
    public mutating func removePeer(_ index: PeerIndex) {
        guard let peer = peers[Int(index.rawValue)] else { return }
        dropStagedPackets(of: peer)
        dropSessions(of: peer)
        deadlines.remove(index.rawValue)
        if peer.pending.contains(.queued) { peersWithWork.remove(index) }
        allowedIPs.removeAll(of: index)
        slotsByKey[peer.publicKey] = nil
        if let previous = peer.previousPeer {
            self.peer(previous).nextPeer = peer.nextPeer
        } else {
            firstPeer = peer.nextPeer
        }
        if let next = peer.nextPeer {
            self.peer(next).previousPeer = peer.previousPeer
        } else {
            lastPeer = peer.previousPeer
        }
        reports.removeAll { $0.peer == index }
        peers[Int(index.rawValue)] = nil
        freeSlots.append(index.rawValue)
    }

    /// Removes every peer.
    public mutating func removeAllPeers() {
        forEachPeer { device, peer in device.removePeer(peer.index) }
    }

    /// Sets the preshared key of a peer (32 bytes, all zero for none). It counts from the next handshake on.
    public mutating func setPresharedKey(_ key: RawSpan, of index: PeerIndex) {
        peer(index).presharedKey = SecretMemory(copying: key)
    }

    /// Sets where a peer is reached.
    public mutating func setEndpoint(_ endpoint: Endpoint, of index: PeerIndex) {
        peer(index).path = Path(remote: endpoint)
    }

    /// Sets how often an empty message goes to a peer that was otherwise silent; nil for never.
    ///
    /// - Returns: True when that turned them on: the first should be sent as soon as the peer is configured.
    public mutating func setPersistentKeepalive(_ interval: Interval?, of index: PeerIndex, at now: Instant) -> Bool {
        let peer = peer(index)
        let wasOff = peer.timers.persistentKeepaliveInterval == nil
        peer.timers.setPersistentKeepalive(interval, at: now)
        if isUp { noteDeadline(of: peer) } else { peer.timers.stop() }
        return wasOff && interval != nil
    }

    /// Lets a prefix belong to a peer; it may have belonged to another one.
    public mutating func addAllowedIP(_ prefix: IPPrefix, for index: PeerIndex) {
        allowedIPs.insert(prefix.address, prefixLength: prefix.length, for: index)
    }

    /// Takes a prefix from a peer, if it is the peer's.
    public mutating func removeAllowedIP(_ prefix: IPPrefix, of index: PeerIndex) {
        allowedIPs.remove(prefix.address, prefixLength: prefix.length, ifOwnedBy: index)
    }

    /// Takes all prefixes from a peer.
    public mutating func removeAllowedIPs(of index: PeerIndex) {
        allowedIPs.removeAll(of: index)
    }

    /// Starts what waits for a peer whose settings may just have made it possible.
    ///
    /// - Parameter startsKeepalives: Persistent keepalives were turned on: the first goes out now.
    public mutating func peerConfigured(_ index: PeerIndex, startsKeepalives: Bool) {
        guard isUp else { return }
        let peer = peer(index)
        if !peer.staged.isEmpty { schedule(.flush, for: peer) }
        if startsKeepalives { schedule(.keepalive, for: peer) }
    }

    /// True when no more peers can be added.
    var isFull: Bool { slotsByKey.count >= ProtocolConstants.maximumPeers }

    // MARK: Inside

    private func isOwn(_ key: PublicKey) -> Bool {
        switch identity {
        case .some(let identity): identity.publicKey == key
        case .none: false
        }
    }

    private mutating func startWaiting(_ peer: Peer) {
        if !peer.staged.isEmpty { schedule(.flush, for: peer) }
        if peer.timers.persistentKeepaliveInterval != nil { schedule(.keepalive, for: peer) }
    }

    private mutating func precomputeStaticStatic(of peer: Peer) {
        peer.hasUsableKeys = false
        peer.staticStatic.wipe()
        switch identity {
        case .none:
            break
        case .some(let identity):
            peer.hasUsableKeys = peer.staticStatic.deriveShared(
                identity.privateKey, peer.publicKey, using: cryptography)
        }
    }

    /// Calls `body` for every peer in the order of creation; it may remove the peer it is called for.
    private mutating func forEachPeer(_ body: (inout Device, Peer) -> Void) {
        var next = firstPeer
        while let index = next {
            let peer = peer(index)
            next = peer.nextPeer
            body(&self, peer)
        }
    }
}
