internal import DNSMessage

/// What is taken out of servers' answers before they are kept and given to clients.
public struct AnswerRewriting: Equatable, Sendable {
    /// True when HTTPS and SVCB lose the key for encrypted ClientHellos, for the names that clients connect to to be seen (RFC 9848).
    public var removesECH = false
    /// Protocols that HTTPS and SVCB lose, by their identifiers: `h3` for one (RFC 9460 §7.1).
    public var removedProtocols: [String] = []
    /// True when HTTPS and SVCB lose the addresses that they hint at, for clients to ask for them (RFC 9460 §7.3).
    public var removesHints = false
    /// True when no client gets an IPv6 address of a server: there is none for any name, and no hint at one.
    public var blocksIPv6 = false

    /// Nothing is taken out.
    public init() {}

    /// What this means for HTTPS and SVCB.
    var serviceBindingEdit: ServiceBindingEdit {
        var keys: ServiceParameterKeys = []
        if removesECH { keys.insert(.ech) }
        if removesHints { keys.formUnion([.ipv4Hint, .ipv6Hint]) }
        if blocksIPv6 { keys.insert(.ipv6Hint) }
        return ServiceBindingEdit(omittedKeys: keys, omittedProtocols: removedProtocols.map { Array($0.utf8) })
    }
}
