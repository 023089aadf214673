internal import IPPacket

/// The rules about addresses. A rule that lets through wins over all that block, whichever is longer.
struct AddressRules: Sendable {
    private var verdicts: [IPPrefix: RuleVerdict] = [:]
    /// The lengths that prefixes have, in each family.
    private var lengths: (v4: [UInt8], v6: [UInt8]) = ([], [])

    init(_ rules: [AddressRule] = []) {
        for rule in rules where verdicts[rule.prefix] != .allow {
            verdicts[rule.prefix] = rule.action == .allow ? .allow : .block(.inline)
        }
        for prefix in verdicts.keys {
            switch prefix.address {
            case .v4: if !lengths.v4.contains(prefix.length) { lengths.v4.append(prefix.length) }
            case .v6: if !lengths.v6.contains(prefix.length) { lengths.v6.append(prefix.length) }
            }
        }
    }

    /// True when there are none.
    var isEmpty: Bool { verdicts.isEmpty }

    /// What the rules say about an address. One of IPv6 that only stands for one of IPv4 is held to the rules about both.
    func verdict(on address: IPAddress) -> RuleVerdict {
        if isEmpty { return .none }
        var verdict = RuleVerdict.none
        for length in address.version == .v4 ? lengths.v4 : lengths.v6 {
            switch verdicts[IPPrefix(address: address, length: length)] {
            case .allow: return .allow
            case .block(let source): verdict = .block(source)
            case nil, RuleVerdict.none?: break
            }
        }
        guard case .v6(let mapped) = address, let embedded = mapped.mappedIPv4 else { return verdict }
        let other = self.verdict(on: .v4(embedded))
        return other == .none ? verdict : other
    }
}
