internal import DNSMessage
internal import IPPacket

/// What an answer may lead to.
struct AnswerPolicy: Sendable {
    /// True when a rule lets the question through: what its answer leads to is no matter then.
    let isAllowed: Bool
    /// True when the answer must not lead to the inside.
    let keepsOutside: Bool
    /// The prefix behind which a translator finds IPv4 addresses; nil for none.
    let prefix: TranslationPrefix?

    /// A policy.
    init(isAllowed: Bool, keepsOutside: Bool, _ prefix: TranslationPrefix?) {
        self.isAllowed = isAllowed
        self.keepsOutside = keepsOutside
        self.prefix = prefix
    }

    /// What becomes of an answer: aliases and the targets of services are held to the rules like the question, addresses and hints at
    /// them to the rules about addresses.
    func verdict(on facts: AnswerFacts, _ rules: NameRules) -> AnswerVerdict {
        if isAllowed { return .passes }
        if !rules.isEmpty {
            for name in facts.aliases {
                if case .block(let source) = rules.verdict(on: name) { return .blocked(source) }
            }
            for name in facts.serviceTargets {
                if case .block(let source) = rules.verdict(on: name) { return .blocked(source) }
            }
        }
        guard keepsOutside || !rules.addresses.isEmpty else { return .passes }
        let verdict = verdict(on: facts.addresses, rules.addresses)
        if case .blocked = verdict { return verdict }
        let other = self.verdict(on: facts.hints, rules.addresses)
        return other == .passes ? verdict : other
    }

    /// What becomes of an answer because of its addresses: that one is blocked counts for more than that one leads to the inside.
    private func verdict(on addresses: [IPAddress], _ rules: AddressRules) -> AnswerVerdict {
        var verdict = AnswerVerdict.passes
        for address in addresses {
            switch self.verdict(on: address, rules) {
            case .passes: break
            case .rebinds: verdict = .rebinds
            case .blocked(let source): return .blocked(source)
            }
        }
        return verdict
    }

    /// What becomes of an answer because of one address. What a rule lets through is not asked where it leads.
    private func verdict(on address: IPAddress, _ rules: AddressRules) -> AnswerVerdict {
        var ruling = rules.verdict(on: address)
        if ruling == .none, case .v6(let translated) = address, let embedded = prefix?.embedded(in: translated) {
            ruling = rules.verdict(on: .v4(embedded))
        }
        switch ruling {
        case .allow: return .passes
        case .block(let source): return .blocked(source)
        case .none: return keepsOutside && leadsInside(address) ? .rebinds : .passes
        }
    }

    /// True for an address of the inside. One that is translated leads to where its IPv4 address does, even when the prefix is a
    /// private one.
    private func leadsInside(_ address: IPAddress) -> Bool {
        if let prefix, case .v6(let translated) = address, let embedded = prefix.embedded(in: translated) {
            return IPAddress.v4(embedded).isOfTheInside
        }
        return address.isOfTheInside
    }
}
