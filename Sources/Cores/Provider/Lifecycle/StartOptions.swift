/// What a provider is started with by the program that asks for it: Apple's options of `startTunnel`. A provider that the system
/// starts by itself, on demand or after a restart, gets none.
public struct StartOptions: Hashable, Sendable {
    /// The value of an option.
    public enum Value: Hashable, Sendable {
        case string(String)
        case number(Int)
        case bool(Bool)
        case data([UInt8])
    }

    /// The options by their names.
    public var values: [String: Value]

    /// Options by their names.
    public init(values: [String: Value] = [:]) {
        self.values = values
    }

    /// The option `name`, or nil.
    public subscript(name: String) -> Value? {
        get { values[name] }
        set { values[name] = newValue }
    }
}
