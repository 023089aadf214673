internal import Provider

/// Network settings on their way into place, and the way back when they do not get there.
///
/// ```
///               request                      success
///   in effect ──────────▶ waiting ─────────────────────────▶ in effect (.applied)
///                            │ refused or late                        ▲
///                            ├─ of settings ▶ rolling back ── success ┘ (.rolledBack)
///                            │                    │ refused or late
///                            │                    └────────▶ uncertain (.lost)
///                            └─ of clearing ───────────────▶ uncertain (.notCleared)
/// ```
///
/// Settings that equal the ones in effect are not asked for again, unless a failure left it uncertain which ones are.
struct SettingsTransaction: Sendable {
    /// What an answer, or the lack of one, means.
    enum Outcome: Equatable {
        /// Nothing: it belongs to a request that was given up.
        case stale
        /// What was asked for is in place.
        case applied
        /// What was asked for failed: apply these, under the number given.
        case rollBack(PacketTunnelNetworkSettings?)
        /// What was asked for failed, and the settings before are in place again.
        case rolledBack(SettingsFailure)
        /// What was asked for failed, and so did restoring the settings before.
        case lost(SettingsFailure)
        /// Clearing failed.
        case notCleared(SettingsFailure)
    }

    private struct Pending {
        let id: PacketTunnelProvider.OperationID
        let wanted: PacketTunnelNetworkSettings?
        let deadline: Instant
        /// Why the settings before are being restored; nil when they are not.
        var cause: SettingsFailure?
    }

    /// The settings that are in place.
    private(set) var inEffect: PacketTunnelNetworkSettings?
    /// False when a failure left it open which settings are in place.
    private var isCertain = true
    private var pending: Pending?

    /// True while an answer is awaited.
    var isPending: Bool { pending != nil }
    /// The request whose answer is awaited; nil when none is.
    var pendingID: PacketTunnelProvider.OperationID? { pending?.id }
    /// When the awaited answer is late; nil when none is awaited.
    var deadline: Instant? { pending?.deadline }

    /// Wants settings in place of the ones in effect or on their way; nil clears them.
    ///
    /// - Returns: True when they are to be applied under `id`; false when there is nothing to do.
    mutating func request(
        _ wanted: PacketTunnelNetworkSettings?, id: PacketTunnelProvider.OperationID, deadline: Instant
    ) -> Bool {
        if pending != nil {
            // What becomes of the one before is not awaited any more.
            isCertain = false
        } else if isCertain, wanted == inEffect {
            return false
        }
        pending = Pending(id: id, wanted: wanted, deadline: deadline)
        return true
    }

    /// Takes the answer to a request.
    ///
    /// - Parameters:
    ///   - id: The request.
    ///   - error: Why it failed; nil when it did not.
    ///   - next: The number of the request to roll back, should it come to that, and when that one is late.
    mutating func answer(
        _ id: PacketTunnelProvider.OperationID, _ error: NetworkSettingsError?,
        next: (id: PacketTunnelProvider.OperationID, deadline: Instant)
    ) -> Outcome {
        guard let pending, pending.id == id else { return .stale }
        return conclude(pending, error.map { .refused($0) }, next: next)
    }

    /// Looks whether the awaited answer is late.
    mutating func expire(
        at now: Instant, next: (id: PacketTunnelProvider.OperationID, deadline: Instant)
    ) -> Outcome {
        guard let pending, pending.deadline <= now else { return .stale }
        return conclude(pending, .late, next: next)
    }

    private mutating func conclude(
        _ done: Pending, _ failure: SettingsFailure?, next: (id: PacketTunnelProvider.OperationID, deadline: Instant)
    ) -> Outcome {
        pending = nil
        guard let failure else {
            inEffect = done.wanted
            isCertain = true
            return done.cause.map { .rolledBack($0) } ?? .applied
        }
        isCertain = false
        if let cause = done.cause { return .lost(cause) }
        if done.wanted == nil { return .notCleared(failure) }
        pending = Pending(id: next.id, wanted: inEffect, deadline: next.deadline, cause: failure)
        return .rollBack(inEffect)
    }
}
