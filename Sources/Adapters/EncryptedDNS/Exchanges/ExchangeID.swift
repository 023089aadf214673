/// Names an exchange with a server until it is over. No number is used twice on a connection.
public struct ExchangeID: Hashable, Sendable {
    /// The number.
    public var rawValue: UInt64

    /// The exchange with a number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}
