internal import Provider
internal import WireGuard

/// A tunnel that is up, and what it has under way.
struct Connection: Sendable {
    /// How the way to the network is.
    ///
    /// ```
    ///             lost                  12 s
    ///   online ────────▶ grace ────────────────▶ suspended
    ///     ▲  ◀────────────┘ back                    │  ▲
    ///     │     followed if it is another           │  │ lost
    ///     │                                    back ▼  │
    ///     └──────────────────────────────────── resuming
    ///            all names found, or not
    /// ```
    enum Connectivity: Sendable {
        /// There is a way.
        case online
        /// There has been none since `lost`; the device goes on trying.
        case grace(lost: Instant, deadline: Instant)
        /// There has been none since `lost` for too long: the device is down, and the settings stay, so that nothing takes
        /// another way.
        case suspended(lost: Instant)
        /// There is one again, and names are being looked up.
        case resuming(lost: Instant, EndpointResolution)
    }

    /// What is in effect.
    var target: TunnelTarget
    var connectivity = Connectivity.online
    /// What the target is being changed to.
    var reload: Reload?

    /// True when something can be sent.
    var isOnline: Bool {
        if case .online = connectivity { true } else { false }
    }

    /// True when the device's link is down for want of a path.
    var isSuspended: Bool {
        switch connectivity {
        case .online, .grace: false
        case .suspended, .resuming: true
        }
    }

    /// When something is due.
    var deadline: Instant? {
        let own: Instant? =
            switch connectivity {
            case .online, .suspended: nil
            case .grace(_, let deadline): deadline
            case .resuming(_, let resolution): resolution.deadline
            }
        guard let other = reload?.deadline else { return own }
        return own.map { min($0, other) } ?? other
    }

    var reason: StatusReason? {
        switch connectivity {
        case .online: nil
        case .grace, .suspended: .pathLost
        case .resuming: .resolvingEndpoints
        }
    }
}
