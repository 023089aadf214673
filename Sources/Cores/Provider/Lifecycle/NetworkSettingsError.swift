/// Why the system did not take a tunnel's network settings: Apple's NETunnelProviderError with its names and numbers.
public enum NetworkSettingsError: Int, Error, CaseIterable, Sendable {
    /// The settings make no sense.
    case networkSettingsInvalid = 1
    /// Others were asked for before these were in place.
    case networkSettingsCanceled = 2
    /// The system could not put them in place.
    case networkSettingsFailed = 3
}

extension NetworkSettingsError: PubliclyLoggable, CustomStringConvertible {
    /// What went wrong.
    public var description: String {
        switch self {
        case .networkSettingsInvalid: "the network settings are invalid"
        case .networkSettingsCanceled: "the network settings were canceled"
        case .networkSettingsFailed: "the network settings could not be applied"
        }
    }
}
