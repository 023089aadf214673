internal import DNSMessage
internal import IPPacket

/// For which networks answers are kept that servers made for one (RFC 7871 §7.3.1).
///
/// The answers are in the cache, each of a question's under its number; number 0 is the one that is not made for any network. How many
/// there are is bounded: of a question that has as many as it may, the oldest is replaced, and so is the oldest question. What an
/// entry says of an answer that is not in the cache any more is not wrong, only of no use.
struct SubnetIndex: Sendable {
    /// For whom an answer is kept.
    struct Scope: Equatable, Sendable {
        /// The number of its answer.
        var number: UInt8
        /// The networks that it is for; nil for those that tell nothing about themselves.
        var prefix: IPPrefix?
        /// How many bits clients have to tell, when the server would have liked to know more than it was told; nil for any number.
        var sourceLength: UInt8?
        /// SCOPE PREFIX-LENGTH as the server said it.
        var scopeLength: UInt8

        /// True when the answer is for a client.
        func holds(for subnet: ClientSubnet) -> Bool {
            if let sourceLength, sourceLength != subnet.sourcePrefixLength { return false }
            guard let prefix else { return subnet.sourcePrefixLength == 0 }
            guard let address = subnet.address, prefix.length <= subnet.sourcePrefixLength else { return false }
            return prefix.contains(address)
        }
    }

    private struct Entry {
        var scopes: [Scope] = []
        /// True when the answer with number 0 was made for all networks.
        var isForAll = false
        var lastNumber: UInt8 = 0
    }

    /// The most questions that have answers for networks, and the most such answers of one question.
    static let limits: (questions: Int, answers: UInt8) = (512, 8)

    private var entries: [[UInt8]: Entry] = [:]
    /// The questions, the oldest at `oldest`.
    private var order: [[UInt8]] = []
    private var oldest = 0

    /// How many questions there are.
    var count: Int { entries.count }

    /// The answers to a question that are for a client, that for the smallest network first.
    func scopes(of key: [UInt8], for subnet: ClientSubnet) -> [Scope] {
        guard let entry = entries[key] else { return [] }
        var found = entry.scopes.filter { $0.holds(for: subnet) }
        found.sort { ($0.prefix?.length ?? 0) > ($1.prefix?.length ?? 0) }
        // What is for all is no answer for who wants nothing told: that one may be another (RFC 7871 §7.3.1).
        if entry.isForAll, subnet.sourcePrefixLength > 0 { found.append(Scope(number: 0, scopeLength: 0)) }
        return found
    }

    /// Finds a number for an answer to a question that a client asked.
    ///
    /// - Parameter scopeLength: SCOPE PREFIX-LENGTH of the answer; nil for an answer that says nothing about networks.
    mutating func number(for key: [UInt8], _ subnet: ClientSubnet, scopeLength: UInt8?) -> UInt8 {
        let scopeLength = scopeLength ?? 0
        insert(key)
        guard subnet.sourcePrefixLength > 0, let address = subnet.address else {
            return number(for: key, Scope(number: 0, sourceLength: 0, scopeLength: scopeLength))
        }
        guard scopeLength > 0 else {
            entries[key]?.isForAll = true
            return 0
        }
        let isWhole = scopeLength <= subnet.sourcePrefixLength
        let prefix = IPPrefix(address: address, length: min(scopeLength, subnet.sourcePrefixLength))
        return number(
            for: key,
            Scope(
                number: 0, prefix: prefix, sourceLength: isWhole ? nil : subnet.sourcePrefixLength,
                scopeLength: scopeLength))
    }

    private mutating func number(for key: [UInt8], _ scope: Scope) -> UInt8 {
        guard var entry = entries[key] else { return 0 }
        var scope = scope
        if let index = entry.scopes.firstIndex(where: {
            $0.prefix == scope.prefix && $0.sourceLength == scope.sourceLength
        }) {
            entry.scopes[index].scopeLength = scope.scopeLength
            entries[key] = entry
            return entry.scopes[index].number
        }
        // Numbers go round, so that the next one is either free or the oldest.
        entry.lastNumber = entry.lastNumber % Self.limits.answers + 1
        scope.number = entry.lastNumber
        entry.scopes.removeAll { $0.number == scope.number }
        entry.scopes.append(scope)
        entries[key] = entry
        return scope.number
    }

    private mutating func insert(_ key: [UInt8]) {
        guard entries[key] == nil else { return }
        entries[key] = Entry()
        guard order.count >= Self.limits.questions else { return order.append(key) }
        entries[order[oldest]] = nil
        order[oldest] = key
        oldest = (oldest + 1) % Self.limits.questions
    }

    /// The answer with number 0 is another one now: who knows for whom.
    mutating func forgetAnswerForAll(of key: [UInt8]) {
        if !entries.isEmpty { entries[key]?.isForAll = false }
    }
}
