public import Provider

/// Why a start or a reload came to nothing.
public enum TunnelFailure: Error, Equatable, Sendable {
    /// A start while the tunnel is up or coming up.
    case alreadyStarted
    /// A reload while the tunnel is not up.
    case notRunning
    /// The tunnel was stopped before.
    case stopped(ProviderStopReason)
    /// A later request of the kind took its place while it waited.
    case superseded
    /// The configuration contradicts itself.
    case invalidConfiguration(InvalidTunnelConfiguration)
    /// A peer's name could not be looked up, and no address of it is remembered.
    case resolution(EndpointName, ResolutionFailure)
    /// The UDP sockets could not be opened.
    case sockets(SocketFailure)
    /// The network settings are not in place.
    case settings(SettingsFailure)
    /// The host could not go on.
    case provider(ProviderFailure)
}

/// Why a name has no address.
public enum ResolutionFailure: Error, Hashable, Sendable {
    /// Nobody answered in time.
    case timedOut
    /// The name does not exist, or has no addresses.
    case noSuchName
    /// Looking it up failed; it may work later.
    case temporaryFailure
}

/// Why network settings are not in place.
public enum SettingsFailure: Error, Hashable, Sendable {
    /// The system refused them.
    case refused(NetworkSettingsError)
    /// The system did not say within the time that it has.
    case late
}

/// Why the UDP sockets are not open.
public enum SocketFailure: Error, Hashable, Sendable {
    /// Another program has the port.
    case portInUse
    /// The port or the mark needs rights that the process lacks.
    case notPermitted
    /// Anything else that the system says.
    case unavailable
    /// The host did not say within the time that it has.
    case late
}

/// What ends a tunnel that was not asked to stop.
public enum ProviderFailure: Error, Hashable, Sendable {
    /// The tunnel's interface was removed.
    case interfaceRemoved
    /// The tunnel's interface failed.
    case interfaceFailed
    /// New network settings failed, and the ones before could not be restored.
    case settingsNotRestored
    /// A part of the host ended that the tunnel cannot do without.
    case hostFailed
}

extension TunnelFailure: PubliclyLoggable, CustomStringConvertible {
    /// What went wrong, without the names and addresses that it went wrong with.
    public var description: String {
        switch self {
        case .alreadyStarted: "the tunnel is started already"
        case .notRunning: "the tunnel is not running"
        case .stopped(let reason): "stopped: \(reason)"
        case .superseded: "a later request took its place"
        case .invalidConfiguration(let problem): "invalid configuration: \(problem)"
        case .resolution(_, let failure): "cannot look up an endpoint: \(failure)"
        case .sockets(let failure): "cannot open the UDP sockets: \(failure)"
        case .settings(let failure): "\(failure)"
        case .provider(let failure): "\(failure)"
        }
    }
}

extension ResolutionFailure: PubliclyLoggable, CustomStringConvertible {
    /// What went wrong.
    public var description: String {
        switch self {
        case .timedOut: "no answer in time"
        case .noSuchName: "there is no such name"
        case .temporaryFailure: "temporary failure"
        }
    }
}

extension SettingsFailure: PubliclyLoggable, CustomStringConvertible {
    /// What went wrong.
    public var description: String {
        switch self {
        case .refused(let error): error.description
        case .late: "the network settings were not applied in time"
        }
    }
}

extension SocketFailure: PubliclyLoggable, CustomStringConvertible {
    /// What went wrong.
    public var description: String {
        switch self {
        case .portInUse: "the port is in use"
        case .notPermitted: "not permitted"
        case .unavailable: "the system refuses"
        case .late: "not opened in time"
        }
    }
}

extension ProviderFailure: PubliclyLoggable, CustomStringConvertible {
    /// What went wrong.
    public var description: String {
        switch self {
        case .interfaceRemoved: "the interface was removed"
        case .interfaceFailed: "the interface failed"
        case .settingsNotRestored: "the network settings could not be restored"
        case .hostFailed: "the host failed"
        }
    }
}
