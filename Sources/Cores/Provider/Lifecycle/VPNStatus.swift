/// How far a tunnel is: Apple's NEVPNStatus with its names and numbers.
public enum VPNStatus: Int, CaseIterable, Sendable {
    /// There is no configuration.
    case invalid = 0
    /// The tunnel is not up.
    case disconnected = 1
    /// The tunnel is coming up for the first time.
    case connecting = 2
    /// The tunnel is up.
    case connected = 3
    /// The tunnel was up and is coming up again; its settings are in place meanwhile.
    case reasserting = 4
    /// The tunnel is going down.
    case disconnecting = 5
}

extension VPNStatus: PubliclyLoggable, CustomStringConvertible {
    /// The name of the status.
    public var description: String {
        switch self {
        case .invalid: "invalid"
        case .disconnected: "disconnected"
        case .connecting: "connecting"
        case .connected: "connected"
        case .reasserting: "reasserting"
        case .disconnecting: "disconnecting"
        }
    }
}
