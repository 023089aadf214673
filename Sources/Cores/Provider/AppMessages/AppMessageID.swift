/// Names a message that a program sent to a provider, until it is answered. The host chooses the numbers and uses none again.
public struct AppMessageID: Hashable, Sendable {
    /// The number.
    public var rawValue: UInt64

    /// The message with a number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}
