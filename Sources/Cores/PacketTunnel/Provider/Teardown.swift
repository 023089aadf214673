internal import Provider
internal import WireGuard

/// The end of a tunnel: everything was taken back but the settings, which are being cleared.
struct Teardown: Sendable {
    /// Why the tunnel ends.
    let end: StatusReason
    /// The start that comes to nothing.
    var failedStart: (id: PacketTunnelProvider.RequestID, failure: TunnelFailure)?
    /// Why the tunnel ends by itself.
    var cancellation: ProviderFailure?
    /// True when somebody waits for the end of a stop.
    var isStopAsked = false
}

extension PacketTunnelProvider {
    mutating func stop(_ reason: ProviderStopReason, at now: Instant) {
        cancelQueuedStart(becauseOf: reason)
        switch phase {
        case .disconnected:
            // Settings that resisted the last time are tried once more.
            phase = .disconnecting(Teardown(end: .stopped(reason), isStopAsked: true))
            if !apply(nil, at: now) { finishTeardown(nil, at: now) }
        case .connecting(let startup):
            let failure = TunnelFailure.stopped(reason)
            tearDown(
                Teardown(end: .stopped(reason), failedStart: (startup.id, failure), isStopAsked: true), at: now)
        case .connected:
            tearDown(Teardown(end: .stopped(reason), isStopAsked: true), at: now)
        case .disconnecting(var teardown):
            teardown.isStopAsked = true
            phase = .disconnecting(teardown)
        }
    }

    /// Answers the start that waits for the tunnel to be down, if there is one: nothing comes of it.
    mutating func cancelQueuedStart(becauseOf reason: ProviderStopReason) {
        guard let queuedStart else { return }
        emit(.completeStart(queuedStart.id, .stopped(reason)))
        self.queuedStart = nil
    }

    /// The host cannot go on: the tunnel ends by itself.
    mutating func fail(_ failure: ProviderFailure, at now: Instant) {
        switch phase {
        case .connecting(let startup):
            failStart(startup, .provider(failure), at: now)
        case .connected:
            log(.error, "the tunnel ends: \(failure)")
            tearDown(Teardown(end: .failed(.provider(failure)), cancellation: failure), at: now)
        case .disconnected, .disconnecting:
            break
        }
    }

    /// Gives up what is under way, takes back what was done, and clears the settings.
    mutating func tearDown(_ teardown: Teardown, at now: Instant) {
        let hasDevice: Bool
        let hasSockets: Bool
        switch phase {
        case .connecting(let startup):
            (hasDevice, hasSockets) = (false, startup.hasSockets)
            if case .resolving(let resolution) = startup.step { cancel(resolution) }
        case .connected(let connection):
            (hasDevice, hasSockets) = (true, true)
            if case .resuming(_, let resolution) = connection.connectivity { cancel(resolution) }
            if let reload = connection.reload {
                if case .resolving(let resolution) = reload.step { cancel(resolution) }
                emit(.completeReload(reload.id, .failure(teardown.reloadFailure)))
            }
        case .disconnected, .disconnecting:
            preconditionFailure("no tunnel to take down")
        }
        if let queuedReload { emit(.completeReload(queuedReload.id, .failure(teardown.reloadFailure))) }
        queuedReload = nil
        remaps.removeAll()
        if isAsleep {
            // The end must not wait for the machine to wake.
            sleptAt = nil
            emit(.resumeDevice)
        }
        phase = .disconnecting(teardown)
        setReasserting(false)
        if hasDevice { emit(.configure([.setLink(up: false), .removeAllPeers, .setPrivateKey(nil)])) }
        if hasSockets { emit(.closeSockets) }
        peers.removeAll()
        if !apply(nil, at: now) { finishTeardown(nil, at: now) }
    }

    private mutating func cancel(_ resolution: EndpointResolution) {
        for id in resolution.operations { emit(.cancelResolve(id)) }
    }

    /// The settings are cleared, or resist: the tunnel is down.
    mutating func finishTeardown(_ failure: SettingsFailure?, at now: Instant) {
        guard case .disconnecting(let teardown) = phase else { return }
        phase = .disconnected
        lastEnd = teardown.end
        publish()
        if let (id, failure) = teardown.failedStart { emit(.completeStart(id, failure)) }
        if let cancellation = teardown.cancellation { emit(.cancelTunnel(cancellation)) }
        if teardown.isStopAsked { emit(.completeStop(failure)) }
        guard let request = queuedStart else { return }
        queuedStart = nil
        start(request, at: now)
    }
}

extension Teardown {
    /// What who asked for a reload is told.
    fileprivate var reloadFailure: TunnelFailure {
        switch end {
        case .stopped(let reason): .stopped(reason)
        case .failed(let failure): failure
        case .resolvingEndpoints, .openingSockets, .applyingSettings, .pathLost: .notRunning
        }
    }
}
