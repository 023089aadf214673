internal import IPPacket
internal import Provider
internal import WireGuard

extension PacketTunnelProvider {
    /// Notes a path without following it.
    mutating func note(_ path: NetworkPath) {
        self.path = path
        if path.isUsable { lastUsablePath = path }
    }

    /// The way to the network is another one.
    mutating func follow(_ path: NetworkPath, at now: Instant) {
        let before = lastUsablePath
        note(path)
        guard case .connected(var connection) = phase else { return }
        switch (connection.connectivity, path.isUsable) {
        case (.online, false):
            losePath(at: now)
        case (.online, true):
            // The first path that the host tells of is the one that the sockets were opened on.
            if path != before { adapt(to: path, hasMoved: before != nil, at: now) }
        case (.grace, true):
            connection.connectivity = .online
            phase = .connected(connection)
            if path != before { adapt(to: path, hasMoved: true, at: now) }
            beginQueuedReload(at: now)
        case (.suspended(let lost), true):
            log(.info, "there is a path to the network again")
            connection.connectivity = .resuming(lost: lost, lookUp(connection.target.configuration.peers, at: now))
            phase = .connected(connection)
            continueResumption(at: now)
        case (.resuming(let lost, let resolution), false):
            for id in resolution.operations { emit(.cancelResolve(id)) }
            connection.connectivity = .suspended(lost: lost)
            phase = .connected(connection)
        case (.grace, false), (.suspended, false), (.resuming, true):
            break
        }
    }

    /// There is no path: it may come back any moment.
    mutating func losePath(at now: Instant) {
        guard case .connected(var connection) = phase else { return }
        connection.connectivity = .grace(lost: now, deadline: now + timings.pathGrace)
        phase = .connected(connection)
        log(.info, "there is no path to the network")
    }

    /// Goes on over another path: with the keys and the endpoints that there are.
    private mutating func adapt(to path: NetworkPath, hasMoved: Bool, at now: Instant) {
        if hasMoved {
            log(.info, "the path to the network is another one")
            emit(.rebindSockets)
        }
        // What peers send finds us when they know where we are.
        let live = hasMoved ? peers.live(at: now, sessionLife: timings.sessionLife) : []
        let reachable = remap(peers.keys, over: path, greeting: live, at: now)
        if !reachable.isEmpty { emit(.sendKeepalives(reachable)) }
    }

    // MARK: Suspension

    mutating func expire(_ connection: Connection, at now: Instant) {
        switch connection.connectivity {
        case .grace(let lost, let deadline) where deadline <= now:
            suspend(connection, lost: lost)
        case .resuming(let lost, var resolution) where resolution.deadline <= now:
            giveUp(&resolution)
            var connection = connection
            connection.connectivity = .resuming(lost: lost, resolution)
            phase = .connected(connection)
            continueResumption(at: now)
        case .online, .grace, .suspended, .resuming:
            break
        }
        expireReload(at: now)
    }

    private mutating func suspend(_ connection: Connection, lost: Instant) {
        var connection = connection
        connection.connectivity = .suspended(lost: lost)
        phase = .connected(connection)
        remaps.removeAll()
        log(.error, "the tunnel is suspended until there is a path to the network")
        setReasserting(true)
        emit(.configure([.setLink(up: false)]))
    }

    mutating func setReasserting(_ value: Bool) {
        guard value != isReasserting else { return }
        isReasserting = value
        emit(.setReasserting(value))
    }

    /// Takes the tunnel up again when the names are looked up: all of them lead somewhere, or all peers stay where they were.
    mutating func continueResumption(at now: Instant) {
        guard case .connected(var connection) = phase,
            case .resuming(let lost, let resolution) = connection.connectivity, resolution.isComplete
        else { return }
        connection.connectivity = .online
        phase = .connected(connection)
        var changes: [DeviceChange] = []
        if resolution.failed.isEmpty {
            for key in peers.keys { changes += move(key, by: resolution) }
        } else {
            log(.error, "\(resolution.failed.count) names could not be looked up: all peers stay where they were")
        }
        emit(.rebindSockets)
        emit(.configure(changes + [.setLink(up: true)]))
        setReasserting(false)
        var live = peers.live(at: lost, sessionLife: timings.sessionLife)
        if let path { live = remap(peers.keys, over: path, greeting: live, at: now) }
        if !live.isEmpty { emit(.initiateHandshakes(live)) }
        beginQueuedReload(at: now)
    }

    /// Lets a peer be where its name leads now. It stays where it is if that is one of several addresses of the name.
    private mutating func move(_ key: PublicKey, by resolution: EndpointResolution) -> [DeviceChange] {
        guard let peer = peers[key], let name = peer.configuration.endpoint, let found = resolution.found[name] else {
            return []
        }
        if let base = peer.base, found.contains(base) { return [] }
        guard let endpoint = preferred(of: found) else { return [] }
        peers.setEndpoint(endpoint, current: endpoint, of: key)
        return [.setEndpoint(endpoint, of: key)]
    }
}
