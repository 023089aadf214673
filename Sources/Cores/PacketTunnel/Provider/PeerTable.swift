internal import IPPacket
internal import Provider
internal import WireGuard

/// What a packet tunnel knows of its peers besides their configuration.
struct PeerTable: Sendable {
    struct Entry: Sendable {
        var configuration: PeerConfiguration
        /// Where the peer is, as a name led there, as it was written, or as it was heard from.
        var base: Endpoint?
        /// Where the device sends to: ``base``, or by what it is reached through a network that has only IPv6.
        var current: Endpoint?
        var handshake = PeerStatus.Handshake.none
        var lastHandshake: Instant?

        /// True when the peer has a session at `time`: its last handshake is no older than `sessionLife`.
        func isLive(at time: Instant, sessionLife: Interval) -> Bool {
            guard let lastHandshake else { return false }
            return time.since(lastHandshake) < sessionLife
        }
    }

    /// The most names that are remembered.
    private static let maximumRemembered = 256

    /// The peers in the order of the configuration.
    private(set) var keys: [PublicKey] = []
    private var entries: [PublicKey: Entry] = [:]
    /// Where names led to when their peers were last reached.
    var remembered: [EndpointName: Endpoint] = [:]
    private var hasChanged = false

    /// True when something that the status shows has changed since the last call.
    mutating func takeChange() -> Bool {
        defer { hasChanged = false }
        return hasChanged
    }

    subscript(key: PublicKey) -> Entry? { entries[key] }

    /// The peers that had a session at `time`, in the order of the configuration.
    func live(at time: Instant, sessionLife: Interval) -> [PublicKey] {
        keys.filter { entries[$0]?.isLive(at: time, sessionLife: sessionLife) ?? false }
    }

    /// Takes over the peers of a configuration. What is known of a peer that was there stays.
    mutating func replace(with configuration: TunnelConfiguration) {
        let (before, keysBefore) = (entries, keys)
        entries.removeAll()
        keys = configuration.peers.map(\.publicKey)
        if keys != keysBefore { hasChanged = true }
        for peer in configuration.peers {
            var entry = before[peer.publicKey] ?? Entry(configuration: peer)
            if entry.configuration != peer { hasChanged = true }
            entry.configuration = peer
            entries[peer.publicKey] = entry
        }
    }

    /// Forgets all peers, and not where names lead to.
    mutating func removeAll() {
        guard !keys.isEmpty else { return }
        keys.removeAll()
        entries.removeAll()
        hasChanged = true
    }

    /// Sets where a peer is, and where the device sends to.
    mutating func setEndpoint(_ base: Endpoint, current: Endpoint, of key: PublicKey) {
        guard let entry = entries[key], entry.base != base || entry.current != current else { return }
        entries[key]?.base = base
        entries[key]?.current = current
        hasChanged = true
    }

    mutating func handshakeCompleted(_ key: PublicKey, at now: Instant) {
        guard let entry = entries[key] else { return }
        // Only the first of many is a change: the time of the last is counted, like bytes.
        if entry.handshake != .completed { hasChanged = true }
        entries[key]?.handshake = .completed
        entries[key]?.lastHandshake = now
        if let name = entry.configuration.endpoint, let base = entry.base { remember(base, for: name) }
    }

    mutating func handshakeGivenUp(_ key: PublicKey) {
        guard let entry = entries[key], entry.handshake != .givenUp else { return }
        entries[key]?.handshake = .givenUp
        hasChanged = true
    }

    mutating func endpointChanged(_ key: PublicKey, _ endpoint: Endpoint) {
        guard let entry = entries[key], entry.current != endpoint else { return }
        setEndpoint(endpoint, current: endpoint, of: key)
    }

    /// Remembers where a name led to.
    ///
    /// Numbers lead to themselves and are not worth it.
    mutating func remember(_ endpoint: Endpoint, for name: EndpointName) {
        guard name.numericEndpoint == nil else { return }
        if remembered[name] == nil, remembered.count >= Self.maximumRemembered {
            // What the tunnel at hand does not name goes first.
            let names = Set(entries.values.compactMap(\.configuration.endpoint))
            remembered = remembered.filter { names.contains($0.key) }
            if remembered.count >= Self.maximumRemembered { return }
        }
        remembered[name] = endpoint
    }

    var statuses: [PeerStatus] {
        keys.compactMap { key in
            guard let entry = entries[key] else { return nil }
            let peer = entry.configuration
            return PeerStatus(
                publicKey: key, endpointName: peer.endpoint, endpoint: entry.current, allowedIPs: peer.allowedIPs,
                persistentKeepaliveSeconds: peer.persistentKeepaliveSeconds, handshake: entry.handshake)
        }
    }
}
