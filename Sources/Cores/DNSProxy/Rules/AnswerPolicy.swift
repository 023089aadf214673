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

    /// What becomes of an answer: aliases and the targets of services are held to the rules like the question.
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
        guard keepsOutside else { return .passes }
        for address in facts.addresses where leadsInside(address) { return .rebinds }
        for address in facts.hints where leadsInside(address) { return .rebinds }
        return .passes
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
