public import IPPacket

/// A rule about addresses that answers lead to, in the form of ad blockers: `198.51.100.0/24` or `||198.51.100.7^` blocks answers that
/// have such an address or hint at one, `@@198.51.100.7` lets the address through.
public struct AddressRule: Hashable, Sendable {
    /// The addresses.
    public var prefix: IPPrefix
    /// What becomes of answers that have one of them. One that is let through is not held to the rules, nor kept for the inside.
    public var action: NameRule.Action

    /// A rule about addresses.
    public init(prefix: IPPrefix, action: NameRule.Action) {
        self.prefix = prefix
        self.action = action
    }

    /// Reads an address or a prefix, as it is or between `||` and `^`, with `@@` in front or without. Nil for everything else, and for
    /// a prefix of no bits, which would be about every address.
    public init?(parsing text: String) {
        var rest = text[...]
        action = .block
        if rest.hasPrefix("@@") {
            action = .allow
            rest = rest.dropFirst(2)
        }
        if rest.hasPrefix("||") {
            guard rest.hasSuffix("^") else { return nil }
            rest = rest.dropFirst(2).dropLast()
        }
        guard let prefix = try? IPPrefix(parsing: rest), prefix.length > 0 else { return nil }
        self.prefix = prefix
    }
}
