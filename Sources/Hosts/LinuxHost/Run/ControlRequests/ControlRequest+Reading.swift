internal import DNSMessage
internal import JSON5
internal import Provider

extension ControlRequest {
    /// The request in a line, which comes without its end.
    init(reading line: RawSpan) throws(ControlRequestError) {
        let value: JSON5Value
        do throws(JSON5Error) { value = try JSON5Value(reading: line) } catch { throw .notJSON(error) }
        guard case .object(let members) = value.content, members.count == 1 else { throw .notOneRequest }
        guard let verb = Verb(rawValue: members[0].name) else { throw .unknownRequest(members[0].name) }
        var options = try ControlRequestOptions(of: verb, in: members[0].value)
        switch verb {
        case .status:
            self = .status(after: try options.takeNumber(.after), timeLimit: try options.takeTimeLimit())
        case .queries:
            self = .queries(
                QueryLogRequest(from: try options.takeNumber(.from), timeLimit: try options.takeTimeLimit()))
        case .flushDNS:
            self = .flushDNS(try options.takeName())
        }
        try options.requireNoOthers()
    }
}

/// The options of a request, which are taken out one after the other.
private struct ControlRequestOptions {
    private let verb: ControlRequest.Verb
    private var rest: [JSON5Member]
    private var known: [ControlRequest.Option] = []

    init(of verb: ControlRequest.Verb, in value: JSON5Value) throws(ControlRequestError) {
        guard case .object(let members) = value.content else { throw .notOptions(of: verb) }
        var names: Set<String> = []
        for member in members where !names.insert(member.name).inserted {
            throw .repeatedOption(member.name, of: verb)
        }
        self.verb = verb
        rest = members
    }

    mutating func takeNumber(_ option: ControlRequest.Option) throws(ControlRequestError) -> UInt64? {
        guard let value = take(option) else { return nil }
        guard case .integer(let number) = value.content, number >= 0 else {
            throw .unusableValue(of: option, in: verb, expected: .number)
        }
        return UInt64(number)
    }

    mutating func takeTimeLimit() throws(ControlRequestError) -> Interval {
        // Who holds the answer has a limit of its own, which is far lower.
        .seconds(min(try takeNumber(.timeLimitSeconds) ?? 0, 86_400))
    }

    mutating func takeName() throws(ControlRequestError) -> DomainName? {
        guard let value = take(.name) else { return nil }
        guard case .string(let text) = value.content, let name = try? DomainName(parsing: text) else {
            throw .unusableValue(of: .name, in: verb, expected: .name)
        }
        return name
    }

    /// To be called when all that are known were taken.
    func requireNoOthers() throws(ControlRequestError) {
        if let other = rest.first { throw .unknownOption(other.name, of: verb, known: known) }
    }

    private mutating func take(_ option: ControlRequest.Option) -> JSON5Value? {
        known.append(option)
        guard let index = rest.firstIndex(where: { $0.name == option.rawValue }) else { return nil }
        return rest.remove(at: index).value
    }
}
