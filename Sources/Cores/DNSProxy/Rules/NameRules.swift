internal import ByteAccess
internal import DNSMessage

/// What rules say about a name.
public enum RuleVerdict: UInt8, Hashable, Sendable, BitwiseCopyable {
    /// Nothing.
    case none
    /// It is blocked.
    case block
    /// It is not blocked, and neither is what its answer leads to.
    case allow
}

/// The rules of the configuration. A rule that lets through wins over all that block, whichever is longer.
struct NameRules: Sendable {
    /// What is said about addresses.
    let addresses: AddressRules
    private let table: NameTable<RuleVerdict>

    init(_ rules: [NameRule], addresses: [AddressRule] = []) {
        self.addresses = AddressRules(addresses)
        var names: [DomainName: RuleVerdict] = [:]
        for rule in rules where names[rule.name] != .allow {
            names[rule.name] = rule.action == .allow ? .allow : .block
        }
        table = NameTable(names.map { (name: $0.key, value: $0.value) })
    }

    /// True when there are none about names.
    var isEmpty: Bool { table.isEmpty }

    /// What the rules say about a name.
    func verdict(on name: borrowing CanonicalName) -> RuleVerdict {
        var verdict = RuleVerdict.none
        table.forEachMatch(of: name) { (found, _) in
            if verdict != .allow { verdict = found }
        }
        return verdict
    }

    /// What the rules say about a name of an answer.
    func verdict(on name: DomainName) -> RuleVerdict {
        if isEmpty { return .none }
        let lowercased = DomainName(name.view, lowercased: true)
        return verdict(on: CanonicalName(lowercased: lowercased.bytes))
    }
}
