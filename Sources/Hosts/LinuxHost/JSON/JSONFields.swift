internal import JSON5

/// The members of an object, by their names. What is missing, or of another kind, is nil.
struct JSONFields: Sendable {
    private let members: [String: JSON5Value]
    /// The names in their order.
    let names: [String]

    /// The members of a value; nil when it is no object.
    init?(_ value: JSON5Value) {
        guard case .object(let members) = value.content else { return nil }
        names = members.map(\.name)
        self.members = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }

    func string(_ name: String) -> String? {
        if case .string(let text)? = members[name]?.content { text } else { nil }
    }

    func number(_ name: String) -> UInt64? {
        if case .integer(let number)? = members[name]?.content { UInt64(exactly: number) } else { nil }
    }

    func boolean(_ name: String) -> Bool {
        if case .boolean(let value)? = members[name]?.content { value } else { false }
    }

    func array(_ name: String) -> [JSON5Value]? {
        if case .array(let values)? = members[name]?.content { values } else { nil }
    }

    func object(_ name: String) -> JSONFields? { members[name].flatMap { JSONFields($0) } }

    func objects(_ name: String) -> [JSONFields] { array(name)?.compactMap { JSONFields($0) } ?? [] }

    func strings(_ name: String) -> [String] {
        array(name)?.compactMap { if case .string(let text) = $0.content { text } else { nil } } ?? []
    }
}

extension JSONText {
    /// A value that was read. Numbers with a fraction, which no daemon writes, are null.
    init(_ value: JSON5Value) {
        switch value.content {
        case .null, .real: self = .null
        case .boolean(let value): self = .boolean(value)
        case .integer(let number): self = .number(number)
        case .string(let text): self = .string(text)
        case .array(let values): self = .array(values.map { JSONText($0) })
        case .object(let members): self = .object(members.map { ($0.name, JSONText($0.value)) })
        }
    }
}
