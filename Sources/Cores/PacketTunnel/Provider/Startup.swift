internal import Provider
internal import WireGuard

/// A start that is under way.
///
/// ```
///                 all found          open
///   resolving ───────────────▶ opening ─────▶ applying ─────▶ connected
///       │ a name has no address    │ failed       │ failed or late, and rolled back
///       └──────────────────────────┴──────────────┴─────────▶ disconnecting
/// ```
struct Startup: Sendable {
    enum Step: Sendable {
        case resolving(EndpointResolution)
        case opening(PacketTunnelProvider.OperationID, deadline: Instant)
        case applying
    }

    let id: PacketTunnelProvider.RequestID
    let target: TunnelTarget
    var step: Step
    var hasSockets = false

    /// When the step has failed; settings have a deadline of their own.
    var deadline: Instant? {
        switch step {
        case .resolving(let resolution): resolution.deadline
        case .opening(_, let deadline): deadline
        case .applying: nil
        }
    }

    var reason: StatusReason {
        switch step {
        case .resolving: .resolvingEndpoints
        case .opening: .openingSockets
        case .applying: .applyingSettings
        }
    }
}

extension PacketTunnelProvider {
    mutating func start(_ request: Request, at now: Instant) {
        switch phase {
        case .disconnected:
            begin(request, at: now)
        case .connecting, .connected:
            emit(.completeStart(request.id, .alreadyStarted))
        case .disconnecting:
            if let queuedStart { emit(.completeStart(queuedStart.id, .superseded)) }
            queuedStart = request
        }
    }

    private mutating func begin(_ request: Request, at now: Instant) {
        let target: TunnelTarget
        do throws(InvalidTunnelConfiguration) {
            target = try TunnelTarget(request)
        } catch {
            log(.error, "cannot start: \(TunnelFailure.invalidConfiguration(error))")
            lastEnd = .failed(.invalidConfiguration(error))
            publish()
            emit(.completeStart(request.id, .invalidConfiguration(error)))
            return
        }
        let starter = request.options == nil ? "the system" : "a program"
        log(.info, "\(public: starter) starts a tunnel to \(target.configuration.peers.count) peers")
        peers.replace(with: target.configuration)
        let resolution = lookUp(target.configuration.peers, at: now)
        phase = .connecting(Startup(id: request.id, target: target, step: .resolving(resolution)))
        continueStartup(at: now)
    }

    /// Goes on with the start when its step is done.
    mutating func continueStartup(at now: Instant) {
        guard case .connecting(var startup) = phase, case .resolving(let resolution) = startup.step,
            resolution.isComplete
        else { return }
        for peer in startup.target.configuration.peers {
            guard let name = peer.endpoint else { continue }
            switch endpoint(of: name, in: resolution) {
            case .success(let endpoint):
                peers.setEndpoint(endpoint, current: endpoint, of: peer.publicKey)
            case .failure(let failure):
                return failStart(startup, .resolution(name, failure), at: now)
            }
        }
        let id = nextOperation()
        startup.step = .opening(id, deadline: now + timings.sockets)
        startup.hasSockets = true
        phase = .connecting(startup)
        emit(.openSockets(startup.target.socketOptions, id))
    }

    /// The sockets of a start are open, or not.
    mutating func socketsOpened(for startup: Startup, _ failure: SocketFailure?, at now: Instant) {
        if let failure { return failStart(startup, .sockets(failure), at: now) }
        var startup = startup
        startup.step = .applying
        phase = .connecting(startup)
        if !apply(startup.target.settings, at: now) { connect(startup, at: now) }
    }

    mutating func expire(_ startup: Startup, at now: Instant) {
        guard let deadline = startup.deadline, deadline <= now else { return }
        var startup = startup
        switch startup.step {
        case .resolving(var resolution):
            giveUp(&resolution)
            startup.step = .resolving(resolution)
            phase = .connecting(startup)
            continueStartup(at: now)
        case .opening:
            failStart(startup, .sockets(.late), at: now)
        case .applying:
            break
        }
    }

    mutating func failStart(_ startup: Startup, _ failure: TunnelFailure, at now: Instant) {
        tearDown(Teardown(end: .failed(failure), failedStart: (startup.id, failure)), at: now)
    }

    /// The settings are in place: sets the device up, and the tunnel is connected.
    mutating func connect(_ startup: Startup, at now: Instant) {
        let configuration = startup.target.configuration
        var endpoints: [PublicKey: Endpoint] = [:]
        for peer in configuration.peers { endpoints[peer.publicKey] = peers[peer.publicKey]?.current }
        phase = .connected(Connection(target: startup.target))
        let changes = TunnelDifference(from: nil, to: configuration).changes(endpoints: endpoints)
        emit(.configure(changes + [.setLink(up: true)]))
        publish()
        emit(.completeStart(startup.id, nil))
        if let path {
            if path.isUsable { remap(peers.keys, over: path, at: now) } else { losePath(at: now) }
        }
        beginQueuedReload(at: now)
    }
}
