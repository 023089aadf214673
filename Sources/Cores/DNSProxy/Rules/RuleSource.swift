/// Which list a rule is from. Clients are told when something is blocked by it (RFC 8914 §4.16), never the rule itself.
public struct RuleSource: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The place of its name in the names of sources.
    public var rawValue: UInt8

    /// The source at a place.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The rules of the configuration itself.
    public static var inline: Self { Self(rawValue: 0) }
    /// The hosts files.
    public static var hostsFile: Self { Self(rawValue: 1) }

    /// How those that are always there are called: by their keys in the configuration.
    static let standardNames = ["rules.inline", "dns.hostsFile"]
}
