/// Why a line of the configuration protocol is refused.
public enum ConfigurationError: Error, Equatable, Sendable {
    /// A line without `=`, or one that is too long.
    case malformedLine
    /// A key that does not belong where it stands.
    case unknownKey
    /// A value that its key cannot have.
    case invalidValue
    /// One peer more than a device can have.
    case tooManyPeers
}
