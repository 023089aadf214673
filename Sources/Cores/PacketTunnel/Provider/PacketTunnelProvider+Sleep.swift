internal import Provider
internal import WireGuard

extension PacketTunnelProvider {
    /// Stops the timers; everything else stays as it is.
    mutating func sleep(at now: Instant) {
        if sleptAt == nil {
            sleptAt = now
            emit(.pauseDevice)
        }
        emit(.completeSleep)
    }

    /// Does what became due, once, and lets peers whose session grew old meanwhile have a new one.
    mutating func wake(at now: Instant) {
        guard let sleptAt else { return }
        self.sleptAt = nil
        emit(.resumeDevice)
        expireDeadlines(at: now)
        guard case .connected(let connection) = phase, connection.isOnline else { return }
        let stale = peers.live(at: sleptAt, sessionLife: timings.sessionLife).filter {
            !(peers[$0]?.isLive(at: now, sessionLife: timings.staleAfter) ?? false)
        }
        if !stale.isEmpty { emit(.initiateHandshakes(stale)) }
    }
}
