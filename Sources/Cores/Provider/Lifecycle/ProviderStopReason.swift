/// Why a provider is stopped: Apple's NEProviderStopReason with its names and numbers.
public enum ProviderStopReason: Int, CaseIterable, Sendable {
    /// No reason is known.
    case none = 0
    /// A person stopped it.
    case userInitiated = 1
    /// The provider failed.
    case providerFailed = 2
    /// There is no network.
    case noNetworkAvailable = 3
    /// The network changed in a way that the provider cannot follow.
    case unrecoverableNetworkChange = 4
    /// Providers of this kind were switched off.
    case providerDisabled = 5
    /// Nobody answered a request for credentials.
    case authenticationCanceled = 6
    /// The configuration is wrong.
    case configurationFailed = 7
    /// Nothing went through the tunnel for long.
    case idleTimeout = 8
    /// The configuration was switched off.
    case configurationDisabled = 9
    /// The configuration was removed.
    case configurationRemoved = 10
    /// Another configuration takes over. Apple spells it so.
    case superceded = 11
    /// The user logged out.
    case userLogout = 12
    /// Another user took over the machine.
    case userSwitch = 13
    /// The connection could not be made.
    case connectionFailed = 14
    /// The machine goes to sleep, and the configuration says to disconnect then.
    case sleep = 15
    /// The program is about to be replaced by a newer one.
    case appUpdate = 16
    /// Something inside went wrong.
    case internalError = 17
}

extension ProviderStopReason: PubliclyLoggable, CustomStringConvertible {
    /// The reason in words.
    public var description: String {
        switch self {
        case .none: "no reason given"
        case .userInitiated: "user initiated"
        case .providerFailed: "provider failed"
        case .noNetworkAvailable: "no network available"
        case .unrecoverableNetworkChange: "unrecoverable network change"
        case .providerDisabled: "provider disabled"
        case .authenticationCanceled: "authentication canceled"
        case .configurationFailed: "configuration failed"
        case .idleTimeout: "idle timeout"
        case .configurationDisabled: "configuration disabled"
        case .configurationRemoved: "configuration removed"
        case .superceded: "superseded by another configuration"
        case .userLogout: "user logout"
        case .userSwitch: "user switch"
        case .connectionFailed: "connection failed"
        case .sleep: "sleep"
        case .appUpdate: "update"
        case .internalError: "internal error"
        }
    }
}
