internal import ByteAccess
internal import DNSMessage

extension DNSProxyProvider {
    /// What the answer to a question about a name may lead to. Servers of a route know the inside, and some domains lead there.
    func policy(for name: borrowing CanonicalName, _ ruling: RuleVerdict, isRouted: Bool) -> AnswerPolicy {
        let keepsOutside =
            configuration.blocksRebinding && !isRouted && rebindingAllowed.longestMatch(of: name) == nil
        return AnswerPolicy(isAllowed: ruling == .allow, keepsOutside: keepsOutside, discovery.prefix)
    }

    /// What policy makes of an answer to the question of a lookup.
    func verdict(on facts: AnswerFacts, of lookup: borrowing Lookup) -> AnswerVerdict {
        let key = lookup.key
        let name = CanonicalName(lowercased: key.span.octets.extracting(5...))
        let ruling = rules.verdict(on: name)
        if case .block(let source) = ruling { return .blocked(source) }
        return policy(for: name, ruling, isRouted: lookup.route != nil).verdict(on: facts, rules)
    }
}
