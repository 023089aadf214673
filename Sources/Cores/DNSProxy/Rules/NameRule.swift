public import DNSMessage

/// A rule about a name and all that is below it, in the form of ad blockers: `||ads.example^` blocks, `@@||good.ads.example^` lets
/// through.
public struct NameRule: Hashable, Sendable {
    /// What a rule does.
    public enum Action: UInt8, Hashable, Sendable {
        /// What it names is blocked.
        case block
        /// What it names is not blocked, whatever other rules say.
        case allow
    }

    /// The name.
    public var name: DomainName
    /// What becomes of it and of what is below it.
    public var action: Action
    /// The list that the rule is from.
    public var source = RuleSource.inline

    /// A rule about a name.
    public init(name: DomainName, action: Action) {
        self.name = name
        self.action = action
    }

    /// Reads `||name^` or `@@||name^`.
    public init(parsing text: String) throws(NameRuleError) {
        var rest = text[...]
        action = .block
        if rest.hasPrefix("@@") {
            action = .allow
            rest = rest.dropFirst(2)
        }
        guard rest.hasPrefix("||"), rest.hasSuffix("^"), rest.utf8.count > 3 else { throw .unknownForm }
        let name = rest.dropFirst(2).dropLast()
        // What means something in longer rules is no part of a name.
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !Self.isSpecial($0) }) else { throw .unknownForm }
        do {
            self.name = try DomainName(parsing: String(name))
        } catch {
            throw .invalidName(error)
        }
        guard self.name != DomainName() else { throw .tooWide }
    }

    private static func isSpecial(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "*"), UInt8(ascii: "^"), UInt8(ascii: "|"), UInt8(ascii: "$"), UInt8(ascii: "/"),
            UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "#"), UInt8(ascii: "\\"), UInt8(ascii: ","):
            true
        default: false
        }
    }
}

/// Why a text is not a rule.
public enum NameRuleError: Error, Hashable, Sendable {
    /// It has not the form `||name^` or `@@||name^`.
    case unknownForm
    /// What is between the marks is not a name.
    case invalidName(DomainNameTextError)
    /// It would be about every name.
    case tooWide
}
