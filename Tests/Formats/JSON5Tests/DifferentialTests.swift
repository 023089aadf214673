import ByteAccess
import FoundationEssentials
import JSON5
import TestSupport
import Testing

/// What Foundation's reader of JSON5 makes of a text.
private enum Reference: Decodable, Equatable {
    case null
    case boolean(Bool)
    case number(Double)
    case string(String)
    case array([Reference])
    case object([String: Reference])

    init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: Name.self) {
            var members: [String: Reference] = [:]
            for name in container.allKeys {
                members[name.stringValue] = try container.decode(Reference.self, forKey: name)
            }
            self = .object(members)
            return
        }
        if var container = try? decoder.unkeyedContainer() {
            var elements: [Reference] = []
            while !container.isAtEnd { elements.append(try container.decode(Reference.self)) }
            self = .array(elements)
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else {
            self = .number(try container.decode(Double.self))
        }
    }

    init(reading text: String) throws {
        // Foundation looks behind a number at the very end of the text, where the memory is anything, and may trap.
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        self = try decoder.decode(Reference.self, from: Data((text + "\n").utf8))
    }

    /// A value that we read. Of members with the same name one is kept.
    init(_ value: JSON5Value) {
        switch value.content {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .integer(let number): self = .number(Double(number))
        // NaN would not be equal to itself.
        case .real(let number): self = number.isNaN ? .string("NaN") : .number(number)
        case .string(let string): self = .string(string)
        case .array(let elements): self = .array(elements.map(Reference.init))
        case .object(let members):
            self = .object(Dictionary(members.map { ($0.name, Reference($0.value)) }) { first, _ in first })
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

/// Writes texts in all the ways that JSON5 has.
private struct TextWriter {
    var generator: SeededGenerator

    mutating func pick(_ choices: [String]) -> String {
        choices[Int.random(in: 0..<choices.count, using: &generator)]
    }

    mutating func space() -> String {
        pick(["", "", " ", "\n", "\t", "\r\n", " // c, }\n", "/* * / ' */", "/***/ "])
    }

    mutating func name() -> String {
        let word =
            pick(["a", "_b", "$", "camelCase", "x1", "\u{E9}t\u{E9}", "null", "Infinity"])
            + String(Int.random(in: 0...99_999, using: &generator))
        return pick([word, "\"\(word)\"", "'\(word)'"])
    }

    mutating func string() -> String {
        let quote = pick(["'", "\""])
        let parts = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
            pick([
                "word", " ", "\u{E9}", "\u{1F600}", "\\n", "\\t", "\\b\\f\\r", "\\\\", "\\'", "\\\"", "\\u0041",
                "\\uD83D\\uDE00",
                "\\u00e9", "\\/", quote == "'" ? "\"" : "'", "//", "/*", "{[,:", "\\x41",
            ])
        }
        return quote + parts.joined() + quote
    }

    mutating func number() -> String {
        pick(["", "-", "+"])
            + pick([
                "0", "1", "12345678901", "1.5", ".5", "5.", "1e3", "2.5E-3", "0x1F", "0XdeCAF", "1e+10", "0.1",
                "Infinity",
                "9007199254740993", "123456789.123456789", "1.7976931348623157e308",
            ])
    }

    mutating func value(depth: Int) -> String {
        switch Int.random(in: 0...(depth > 3 ? 3 : 6), using: &generator) {
        case 0: return pick(["null", "true", "false"])
        case 1, 2: return string()
        case 3: return number()
        case 4: return list("[", "]", depth) { writer in writer.value(depth: depth + 1) }
        default:
            return list("{", "}", depth) { writer in
                writer.name() + writer.space() + ":" + writer.space() + writer.value(depth: depth + 1)
            }
        }
    }

    private mutating func list(
        _ start: String, _ end: String, _ depth: Int, _ item: (inout TextWriter) -> String
    ) -> String {
        let count = Int.random(in: 0...4, using: &generator)
        var text = start + space()
        for index in 0..<count {
            text += item(&self) + space()
            if index < count - 1 || Bool.random(using: &generator) { text += "," + space() }
        }
        return text + end
    }
}

/// Foundation is no reference where it strays from the specification: a backslash before what means itself, `\v`, `\0`, the
/// end of a line behind a backslash, tabs in strings and white space beyond ASCII. The tests of reading have these.
struct DifferentialTests {
    @Test("Texts mean to us what they mean to Foundation", arguments: 0..<50)
    func generatedTexts(_ seed: UInt64) throws {
        var writer = TextWriter(generator: SeededGenerator(seed: seed))
        for _ in 0..<100 {
            let text = writer.space() + writer.value(depth: 0) + writer.space()
            #expect(try Reference(read(text)) == Reference(reading: text), "\(text)")
        }
    }

    @Test("Damaged texts are refused by both, or mean the same to both", arguments: 0..<50)
    func damagedTexts(_ seed: UInt64) throws {
        var writer = TextWriter(generator: SeededGenerator(seed: 1000 + seed))
        for _ in 0..<100 {
            var text = Array(writer.value(depth: 0).unicodeScalars)
            for _ in 0..<Int.random(in: 1...2, using: &writer.generator) where !text.isEmpty {
                let place = Int.random(in: 0..<text.count, using: &writer.generator)
                switch Int.random(in: 0...2, using: &writer.generator) {
                case 0: text.remove(at: place)
                case 1: text.insert(Unicode.Scalar(UInt8.random(in: 0x20...0x7E, using: &writer.generator)), at: place)
                default: text.swapAt(place, Int.random(in: 0..<text.count, using: &writer.generator))
                }
            }
            var damaged = String.UnicodeScalarView()
            damaged.append(contentsOf: text)
            let string = String(damaged).replacing("\t", with: " ")
            if Self.hasEscapesThatFoundationLacks(string) || Self.hasEmptyExponent(string) { continue }
            let ours = try? Reference(read(string))
            let theirs = try? Reference(reading: string)
            #expect(ours == theirs, "\(string)")
        }
    }

    /// Foundation traps on `[1e+]`.
    private static func hasEmptyExponent(_ text: String) -> Bool {
        let letters = Array(text.lowercased().unicodeScalars) + ["\n"]
        return letters.indices.dropFirst().dropLast().contains { index in
            (letters[index] == "+" || letters[index] == "-") && letters[index - 1] == "e"
                && !("0"..."9").contains(letters[index + 1])
        }
    }

    private static func hasEscapesThatFoundationLacks(_ text: String) -> Bool {
        var rest = Array(text.unicodeScalars)[...]
        while let backslash = rest.firstIndex(of: "\\"), backslash + 1 < rest.endIndex {
            if !"bfnrtux\\/'\"".unicodeScalars.contains(rest[backslash + 1]) { return true }
            rest = rest[(backslash + 2)...]
        }
        return false
    }
}
