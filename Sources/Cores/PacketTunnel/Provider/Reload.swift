internal import Provider
internal import WireGuard

/// A reload that is under way. Nothing of the tunnel is changed before all that can fail has succeeded, but for the sockets and
/// the settings, which are put back.
///
/// ```
///                 found            open             applied
///   resolving ───────────▶ opening ─────▶ applying ─────────▶ done: the device is changed
///       │ no address           │ failed       │ failed or late
///       └──────────────────────┴──────────────┴──────────────▶ failed: everything is as before
/// ```
///
/// Steps that have nothing to do are left out.
struct Reload: Sendable {
    enum Step: Sendable {
        case resolving(EndpointResolution)
        case opening(PacketTunnelProvider.OperationID, deadline: Instant)
        case applying
    }

    let id: PacketTunnelProvider.RequestID
    let target: TunnelTarget
    let difference: TunnelDifference
    var step: Step
    /// The addresses of the peers whose endpoint is new.
    var endpoints: [PublicKey: Endpoint] = [:]
    var hasNewSockets = false

    /// When the step has failed; settings have a deadline of their own.
    var deadline: Instant? {
        switch step {
        case .resolving(let resolution): resolution.deadline
        case .opening(_, let deadline): deadline
        case .applying: nil
        }
    }
}

extension PacketTunnelProvider {
    mutating func reload(_ request: Request, at now: Instant) {
        switch phase {
        case .disconnected, .disconnecting:
            emit(.completeReload(request.id, .failure(.notRunning)))
        case .connecting, .connected:
            if let queuedReload { emit(.completeReload(queuedReload.id, .failure(.superseded))) }
            queuedReload = request
            beginQueuedReload(at: now)
        }
    }

    /// Begins the reload that waits, when nothing is in its way: names cannot be looked up without a path.
    mutating func beginQueuedReload(at now: Instant) {
        guard case .connected(var connection) = phase, connection.reload == nil, connection.isOnline,
            let request = queuedReload
        else { return }
        queuedReload = nil
        let target: TunnelTarget
        do throws(InvalidTunnelConfiguration) {
            target = try TunnelTarget(request)
            if target.overrides.name != connection.target.overrides.name { throw .changedInterfaceName }
        } catch {
            log(.error, "cannot reload: \(TunnelFailure.invalidConfiguration(error))")
            emit(.completeReload(request.id, .failure(.invalidConfiguration(error))))
            return
        }
        let difference = TunnelDifference(from: connection.target.configuration, to: target.configuration)
        let known = endpointsOfLivePeers(under: difference, in: target)
        let unknown = difference.peersWithNewEndpoint.filter { peer in peer.endpoint.map { known[$0] == nil } ?? false }
        connection.reload = Reload(
            id: request.id, target: target, difference: difference, step: .resolving(lookUp(unknown, at: now)))
        for peer in difference.peersWithNewEndpoint {
            if let name = peer.endpoint { connection.reload?.endpoints[peer.publicKey] = known[name] }
        }
        phase = .connected(connection)
        continueReload(at: now)
    }

    /// Where the names of peers that stay lead to: these are not looked up, even when another peer has the same.
    private func endpointsOfLivePeers(
        under difference: TunnelDifference, in target: TunnelTarget
    ) -> [EndpointName: Endpoint] {
        let new = Set(difference.peersWithNewEndpoint.map(\.publicKey))
        var known: [EndpointName: Endpoint] = [:]
        for peer in target.configuration.peers where !new.contains(peer.publicKey) {
            if let name = peer.endpoint, name.numericEndpoint == nil { known[name] = peers[peer.publicKey]?.base }
        }
        return known
    }

    mutating func reloadResolved(
        _ id: OperationID, _ result: Result<[Endpoint], ResolutionFailure>, at now: Instant
    ) {
        guard case .connected(var connection) = phase, case .resolving(var resolution)? = connection.reload?.step,
            resolution.finish(id, result)
        else { return }
        connection.reload?.step = .resolving(resolution)
        phase = .connected(connection)
        continueReload(at: now)
    }

    /// Goes on when the names are looked up.
    private mutating func continueReload(at now: Instant) {
        guard case .connected(var connection) = phase, var reload = connection.reload,
            case .resolving(let resolution) = reload.step, resolution.isComplete
        else { return }
        for peer in reload.difference.peersWithNewEndpoint where reload.endpoints[peer.publicKey] == nil {
            guard let name = peer.endpoint else { continue }
            switch endpoint(of: name, in: resolution) {
            case .success(let endpoint): reload.endpoints[peer.publicKey] = endpoint
            case .failure(let failure): return finishReload(.resolution(name, failure), at: now)
            }
        }
        guard reload.target.socketOptions != connection.target.socketOptions else {
            connection.reload = reload
            phase = .connected(connection)
            return applyReload(at: now)
        }
        let id = nextOperation()
        reload.step = .opening(id, deadline: now + timings.sockets)
        connection.reload = reload
        phase = .connected(connection)
        emit(.openSockets(reload.target.socketOptions, id))
    }

    /// The sockets are open, or not, for whoever wanted them.
    mutating func socketsOpened(_ id: OperationID, _ failure: SocketFailure?, at now: Instant) {
        switch phase {
        case .connecting(let startup):
            guard case .opening(id, _) = startup.step else { return }
            socketsOpened(for: startup, failure, at: now)
        case .connected(var connection):
            guard case .opening(id, _)? = connection.reload?.step else { return }
            if let failure { return finishReload(.sockets(failure), at: now) }
            connection.reload?.hasNewSockets = true
            phase = .connected(connection)
            applyReload(at: now)
        case .disconnected, .disconnecting:
            break
        }
    }

    private mutating func applyReload(at now: Instant) {
        guard case .connected(var connection) = phase, let target = connection.reload?.target else { return }
        connection.reload?.step = .applying
        phase = .connected(connection)
        if !apply(target.settings, at: now) { finishReload(nil, at: now) }
    }

    /// The settings of a reload are in place, or those before are again.
    mutating func reloadSettled(_ failure: SettingsFailure?, at now: Instant) {
        finishReload(failure.map { .settings($0) }, at: now)
    }

    /// Ends a reload whose settings could neither be applied nor taken back; the tunnel ends with it.
    mutating func abandonReload(_ failure: TunnelFailure) {
        guard case .connected(var connection) = phase, let reload = connection.reload else { return }
        connection.reload = nil
        phase = .connected(connection)
        emit(.completeReload(reload.id, .failure(failure)))
    }

    mutating func expireReload(at now: Instant) {
        guard case .connected(var connection) = phase, let reload = connection.reload, let deadline = reload.deadline,
            deadline <= now
        else { return }
        switch reload.step {
        case .resolving(var resolution):
            giveUp(&resolution)
            connection.reload?.step = .resolving(resolution)
            phase = .connected(connection)
            continueReload(at: now)
        case .opening:
            // The host may open them yet: it is told which ones are wanted.
            connection.reload?.hasNewSockets = true
            phase = .connected(connection)
            finishReload(.sockets(.late), at: now)
        case .applying:
            break
        }
    }

    /// Changes the device, or puts back what was changed, and says so.
    private mutating func finishReload(_ failure: TunnelFailure?, at now: Instant) {
        guard case .connected(var connection) = phase, let reload = connection.reload else { return }
        connection.reload = nil
        if let failure {
            phase = .connected(connection)
            if reload.hasNewSockets { emit(.openSockets(connection.target.socketOptions, nextOperation())) }
            log(.error, "the tunnel stays as it was: \(failure)")
            emit(.completeReload(reload.id, .failure(failure)))
        } else {
            var summary = reload.difference.summary
            summary.changedSockets = reload.hasNewSockets
            summary.changedSettings = reload.target.settings != connection.target.settings
            connection.target = reload.target
            phase = .connected(connection)
            commit(reload, at: now)
            publish()
            emit(.completeReload(reload.id, .success(summary)))
        }
        beginQueuedReload(at: now)
    }

    private mutating func commit(_ reload: Reload, at now: Instant) {
        let changes = reload.difference.changes(endpoints: reload.endpoints)
        peers.replace(with: reload.target.configuration)
        for (key, endpoint) in reload.endpoints { peers.setEndpoint(endpoint, current: endpoint, of: key) }
        if !changes.isEmpty { emit(.configure(changes)) }
        let moved = peers.keys.filter { reload.endpoints[$0] != nil }
        if let path, path.isUsable, !moved.isEmpty { remap(moved, over: path, at: now) }
    }
}
