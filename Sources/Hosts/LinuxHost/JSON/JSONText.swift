/// A value that is written as JSON (RFC 8259), on one line.
indirect enum JSONText {
    case null
    case boolean(Bool)
    /// A whole number: wide enough for each of the standard library's signs and sizes.
    case integer(Int128)
    case string(String)
    case array([JSONText])
    /// The members in the order in which they are written.
    case object([(String, JSONText)])

    /// A whole number.
    static func number(_ value: some BinaryInteger) -> JSONText { .integer(Int128(clamping: value)) }

    /// A text, or null.
    static func optional(_ text: String?) -> JSONText { text.map { .string($0) } ?? .null }

    /// A number, or null.
    static func optional(_ number: (some BinaryInteger)?) -> JSONText { number.map { .number($0) } ?? .null }

    /// The texts of values.
    static func strings(_ values: some Sequence<some CustomStringConvertible>) -> JSONText {
        .array(values.map { .string($0.description) })
    }

    /// The line, without its end.
    var text: String {
        var text = ""
        append(to: &text)
        return text
    }

    private func append(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .boolean(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .string(let value): Self.append(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.append(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, (name, value)) in members.enumerated() {
                if index > 0 { text += "," }
                Self.append(name, to: &text)
                text += ":"
                value.append(to: &text)
            }
            text += "}"
        }
    }

    private static func append(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
