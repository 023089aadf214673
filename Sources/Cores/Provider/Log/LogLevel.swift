/// How much a program says.
public enum LogLevel: Int, Comparable, Sendable {
    /// Nothing.
    case silent
    /// What goes wrong.
    case error
    /// What a person who runs it wants to know, too: it started, it stopped, the network changed.
    case info
    /// What happens in detail, too.
    case verbose

    /// Orders quieter levels first.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

    /// The level with a name: `silent`, `error`, `info`, or `verbose` and `debug`, which mean the same; nil for anything else.
    public init?(named name: String) {
        switch name {
        case "silent": self = .silent
        case "error": self = .error
        case "info": self = .info
        case "verbose", "debug": self = .verbose
        default: return nil
        }
    }
}
