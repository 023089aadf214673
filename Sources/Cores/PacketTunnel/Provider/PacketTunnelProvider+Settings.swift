internal import Provider

extension PacketTunnelProvider {
    /// Wants settings in place. False when there is nothing to do.
    mutating func apply(_ wanted: PacketTunnelNetworkSettings?, at now: Instant) -> Bool {
        let id = nextOperation()
        guard settings.request(wanted, id: id, deadline: now + timings.settings) else { return false }
        emit(.apply(wanted, id))
        return true
    }

    /// Does what follows from settings being in place, or not.
    mutating func settled(_ outcome: SettingsTransaction.Outcome, at now: Instant) {
        switch outcome {
        case .stale:
            return
        case .rollBack(let before):
            guard let id = settings.pendingID else { return }
            log(.error, "the network settings failed; restoring the ones before")
            emit(.apply(before, id))
        case .applied:
            switch phase {
            case .connecting(let startup): connect(startup, at: now)
            case .connected: reloadSettled(nil, at: now)
            case .disconnecting: finishTeardown(nil, at: now)
            case .disconnected: break
            }
        case .rolledBack(let failure):
            switch phase {
            case .connecting(let startup): failStart(startup, .settings(failure), at: now)
            case .connected: reloadSettled(failure, at: now)
            case .disconnecting, .disconnected: break
            }
        case .lost(let failure):
            switch phase {
            case .connecting(let startup): failStart(startup, .settings(failure), at: now)
            case .connected:
                abandonReload(.settings(failure))
                fail(.settingsNotRestored, at: now)
            case .disconnecting, .disconnected: break
            }
        case .notCleared(let failure):
            guard case .disconnecting = phase else { return }
            log(.error, "the network settings could not be cleared: \(failure)")
            finishTeardown(failure, at: now)
        }
    }
}
