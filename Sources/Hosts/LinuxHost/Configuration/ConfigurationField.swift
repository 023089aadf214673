internal import JSON5
internal import PacketTunnel
internal import Provider

/// A value at its place in a configuration, to be read as what it must be. What it is not is noted, and then nil is returned.
struct ConfigurationField {
    /// The value.
    let value: JSON5Value
    /// The key from the top on: `dns.upstreams[1].url`.
    let path: String
    /// The line that errors are noted at: the key's, or an element's own.
    let line: Int
    /// Where they are noted.
    let problems: ConfigurationProblems

    /// Notes that something is wrong with the value.
    func note(_ problem: ConfigurationError.Problem) {
        problems.note(line: line, key: path, problem)
    }

    private func refuse<Result>(_ expectation: String) -> Result? {
        note(.expected(expectation))
        return nil
    }

    /// True or false.
    func boolean() -> Bool? {
        guard case .boolean(let value) = value.content else { return refuse("true or false") }
        return value
    }

    /// A whole number, however it is written.
    func integer(in range: ClosedRange<Int>) -> Int? {
        let number: Int? =
            switch value.content {
            case .integer(let number): number
            case .real(let number): Int(exactly: number)
            default: nil
            }
        guard let number, range.contains(number) else {
            return refuse("a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A length of time in seconds, as finely as in milliseconds.
    func seconds(in range: ClosedRange<Double>) -> Interval? {
        let number: Double? =
            switch value.content {
            case .integer(let number): Double(number)
            case .real(let number): number
            default: nil
            }
        guard let number, range.contains(number) else {
            return refuse("a number of seconds from \(range.lowerBound) to \(range.upperBound)")
        }
        return .milliseconds(UInt64((number * 1000).rounded()))
    }

    /// A text without control characters, of one character at least.
    func text(_ expectation: String = "a text") -> String? {
        guard case .string(let text) = value.content, !text.isEmpty,
            text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { return refuse(expectation) }
        return text
    }

    /// A text that `parse` makes something of.
    func parsed<Result>(_ expectation: String, _ parse: (String) -> Result?) -> Result? {
        guard let text = text(expectation) else { return nil }
        return parse(text) ?? refuse(expectation)
    }

    /// One of the words that are the raw values of a type.
    func choice<Result: RawRepresentable<String> & CaseIterable>(_ type: Result.Type) -> Result? {
        parsed(Result.allCases.map { "\"\($0.rawValue)\"" }.joinedAsChoice) { Result(rawValue: $0) }
    }

    /// An absolute path.
    func path(_ expectation: String = "an absolute path") -> String? {
        parsed(expectation) { $0.hasPrefix("/") ? $0 : nil }
    }

    /// The elements of a list; nil when it is no list or has fewer than `minimum`.
    func elements(_ expectation: String = "a list", atLeast minimum: Int = 0) -> [ConfigurationField]? {
        guard case .array(let elements) = value.content, elements.count >= minimum else { return refuse(expectation) }
        return elements.enumerated().map { index, element in
            ConfigurationField(
                value: element, path: "\(path)[\(index)]", line: element.position.line, problems: problems)
        }
    }

    /// What `read` makes of the elements of a list, without those that it makes nothing of.
    func list<Element>(
        _ expectation: String = "a list", atLeast minimum: Int = 0, _ read: (ConfigurationField) -> Element?
    ) -> [Element]? {
        elements(expectation, atLeast: minimum)?.compactMap(read)
    }

    /// As ``list(_:atLeast:_:)``; an element that is there already is refused.
    func set<Element: Hashable>(
        _ expectation: String = "a list", atLeast minimum: Int = 0, _ read: (ConfigurationField) -> Element?
    ) -> [Element]? {
        var known: Set<Element> = []
        return list(expectation, atLeast: minimum) { field in
            guard let element = read(field) else { return nil }
            guard known.insert(element).inserted else {
                field.note(.conflict("is in the list already"))
                return nil
            }
            return element
        }
    }

    /// What `read` makes of an object. Keys that it does not ask for are noted.
    func object<Result>(_ read: (inout ConfigurationObject) -> Result?) -> Result? {
        guard case .object(let members) = value.content else { return refuse("an object: { … }") }
        var object = ConfigurationObject(members, self)
        let result = read(&object)
        object.noteUnknownKeys()
        return result
    }
}

extension Sequence<String> {
    /// `a, b or c`
    var joinedAsChoice: String {
        let words = Array(self)
        guard let last = words.last, words.count > 1 else { return words.joined() }
        return words.dropLast().joined(separator: ", ") + " or " + last
    }
}

/// An object that is read key by key.
struct ConfigurationObject {
    private let members: [String: JSON5Member]
    private let order: [JSON5Member]
    private let field: ConfigurationField
    private var known: [String] = []

    /// Reads members; what is given twice is noted, and the first counts.
    init(_ members: [JSON5Member], _ field: ConfigurationField) {
        self.members = Dictionary(members.map { ($0.name, $0) }) { first, _ in first }
        self.order = members
        self.field = field
        guard self.members.count < members.count else { return }
        for member in members {
            let first = self.members[member.name]?.position
            if let first, first != member.position {
                field.problems.note(
                    line: member.position.line, key: path(of: member.name), .repeatedKey(firstLine: first.line))
            }
        }
    }

    /// The value of a key; nil when it is not given.
    mutating func field(_ name: String) -> ConfigurationField? {
        known.append(name)
        guard let member = members[name] else { return nil }
        field.problems.lines[path(of: name)] = member.position.line
        return ConfigurationField(
            value: member.value, path: path(of: name), line: member.position.line, problems: field.problems)
    }

    /// The value of a key that must be given.
    mutating func requiredField(_ name: String) -> ConfigurationField? {
        if let field = field(name) { return field }
        field.problems.note(line: field.line, key: path(of: name), .missing)
        return nil
    }

    /// Notes the keys that were never asked for.
    func noteUnknownKeys() {
        let asked = Set(known)
        for member in order where !asked.contains(member.name) && members[member.name]?.position == member.position {
            let nearest = Spelling.nearest(to: member.name, among: known)
            field.problems.note(
                line: member.position.line, key: path(of: member.name), .unknownKey(nearest: nearest, known: known))
        }
    }

    private func path(of name: String) -> String {
        // What is no plain word is quoted, so that nothing in it can break the line.
        let isPlain =
            !name.isEmpty
            && name.unicodeScalars.allSatisfy { $0.properties.isAlphabetic || $0 == "_" || ("0"..."9").contains($0) }
        let name = isPlain && name.count <= 40 ? name : String(name.prefix(40)).debugDescription
        return field.path.isEmpty ? name : "\(field.path).\(name)"
    }
}
