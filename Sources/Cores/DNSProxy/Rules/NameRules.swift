internal import ByteAccess
internal import DNSMessage

/// What rules say about a name.
public enum RuleVerdict: Hashable, Sendable, BitwiseCopyable {
    /// Nothing.
    case none
    /// It is blocked, by a rule of this source.
    case block(RuleSource)
    /// It is not blocked, and neither is what its answer leads to.
    case allow
}

/// All rules. One that lets through wins over all that block, whichever is longer.
struct NameRules: Sendable {
    /// What is said about addresses.
    let addresses: AddressRules
    /// The rules of the configuration, for names and what is below them.
    private let table: NameTable<RuleVerdict>
    /// Names that hosts files block, without what is below them.
    var blockedHosts = NameSet()

    init(_ rules: [NameRule], addresses: [AddressRule] = []) {
        self.addresses = AddressRules(addresses)
        var names: [DomainName: RuleVerdict] = [:]
        for rule in rules where names[rule.name] != .allow {
            names[rule.name] = rule.action == .allow ? .allow : .block(rule.source)
        }
        table = NameTable(names.map { (name: $0.key, value: $0.value) })
    }

    /// True when there are none about names.
    var isEmpty: Bool { table.isEmpty && blockedHosts.isEmpty }

    /// What the rules say about a name.
    func verdict(on name: borrowing CanonicalName) -> RuleVerdict {
        var verdict = RuleVerdict.none
        table.forEachMatch(of: name) { (found, _) in
            if verdict != .allow { verdict = found }
        }
        if verdict == .none, blockedHosts.contains(name) { return .block(.hostsFile) }
        return verdict
    }

    /// What the rules say about a name of an answer.
    func verdict(on name: DomainName) -> RuleVerdict {
        if isEmpty { return .none }
        let lowercased = DomainName(name.view, lowercased: true)
        return verdict(on: CanonicalName(lowercased: lowercased.bytes))
    }
}
