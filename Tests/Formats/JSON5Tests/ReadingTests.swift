import ByteAccess
import JSON5
import Testing

/// Reads a text from a string.
func read(_ text: String) throws(JSON5Error) -> JSON5Value {
    try JSON5Value(reading: Array(text.utf8).span.octets)
}

struct ReadingTests {
    /// The example on the first page of the specification, with the values that it stands for.
    @Test func theExampleOfTheSpecificationIsRead() throws {
        let value = try read(
            #"""
            {
              // comments
              unquoted: 'and you can quote me on that',
              singleQuotes: 'I can use "double quotes" here',
              lineBreaks: "Look, Mom! \
            No \\n's!",
              hexadecimal: 0xdecaf,
              leadingDecimalPoint: .8675309, andTrailing: 8675309.,
              positiveSign: +1,
              trailingComma: 'in objects', andIn: ['arrays',],
              "backwardsCompatible": "with JSON",
            }
            """#)
        guard case .object(let members) = value.content else {
            Issue.record("no object")
            return
        }
        let expected: [(String, JSON5Value.Content)] = [
            ("unquoted", .string("and you can quote me on that")),
            ("singleQuotes", .string("I can use \"double quotes\" here")),
            ("lineBreaks", .string("Look, Mom! No \\n's!")), ("hexadecimal", .integer(0xdecaf)),
            ("leadingDecimalPoint", .real(0.8675309)), ("andTrailing", .real(8675309)), ("positiveSign", .integer(1)),
            ("trailingComma", .string("in objects")),
            (
                "andIn",
                .array([JSON5Value(position: JSON5Position(line: 10, column: 40), content: .string("arrays"))])
            ),
            ("backwardsCompatible", .string("with JSON")),
        ]
        #expect(members.map(\.name) == expected.map(\.0))
        #expect(members.map(\.value.content) == expected.map(\.1))
    }

    @Test func everyValueHasItsLineAndColumn() throws {
        let value = try read("\u{FEFF}// \u{E9}\r\n{ a: 1,\r'\u{1F600}': [true,\n\n  null] }")
        #expect(value.position == JSON5Position(line: 2, column: 1))
        guard case .object(let members) = value.content, case .array(let elements) = members.last?.value.content else {
            Issue.record("no object with an array")
            return
        }
        #expect(members.map(\.position) == [JSON5Position(line: 2, column: 3), JSON5Position(line: 3, column: 1)])
        #expect(
            members.map(\.value.position) == [JSON5Position(line: 2, column: 6), JSON5Position(line: 3, column: 6)])
        #expect(elements.map(\.position) == [JSON5Position(line: 3, column: 7), JSON5Position(line: 5, column: 3)])
    }

    @Test func theSameNameMayComeTwice() throws {
        guard case .object(let members) = try read("{a:1,'a':2}").content else {
            Issue.record("no object")
            return
        }
        #expect(members.map(\.name) == ["a", "a"])
    }

    @Test(
        "Numbers are whole as long as they can be",
        arguments: [
            ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("9223372036854775808", .real(9223372036854775808)), ("0x7fffffffffffffff", .integer(.max)),
            ("0xffffffffffffffff", .real(18446744073709551616)), ("-0x10", .integer(-16)), ("0", .integer(0)),
            ("-0", .integer(0)), ("1.0", .real(1)), ("1e3", .real(1000)), ("5.", .real(5)), (".5E+1", .real(5)),
            ("-Infinity", .real(-.infinity)), ("+Infinity", .real(.infinity)), ("1e-999", .real(0)),
        ] as [(String, JSON5Value.Content)])
    func numbers(_ text: String, _ content: JSON5Value.Content) throws {
        #expect(try read(text).content == content)
    }

    @Test(
        "Strings and names are what the specification says",
        arguments: [
            ("'\\b\\f\\n\\r\\t\\v\\0'", "\u{8}\u{C}\n\r\t\u{B}\0"), ("'\\,\\a\\\u{E9}\\'\\\"'", ",a\u{E9}'\""),
            ("'a\\\nb\\\rc\\\r\nd\\\u{2028}e\\\u{2029}f'", "abcdef"), ("'\u{2028}\t'", "\u{2028}\t"),
            ("'\\x41\\u00e9\\ud83d\\ude00'", "A\u{E9}\u{1F600}"), ("\u{A0}\u{3000}\u{2028}'a'\u{FEFF}\u{B}\u{C}", "a"),
        ])
    func strings(_ text: String, _ string: String) throws {
        #expect(try read(text).content == .string(string))
        guard case .object(let members) = try read("{a\\u00e9\u{200D}\u{300}$_9\u{0660}\u{203F}:\(text)}").content
        else {
            Issue.record("no object")
            return
        }
        #expect(members.map(\.name) == ["a\u{E9}\u{200D}\u{300}$_9\u{0660}\u{203F}"])
        #expect(members.map(\.value.content) == [.string(string)])
    }

    @Test(
        "A text that is not JSON5 is refused at its place",
        arguments: [
            ("", "1:1: expected a value"),
            ("  \n // nothing", "2:12: expected a value"),
            ("{", "1:2: expected a key or \"}\""),
            ("{a 1}", "1:4: expected \":\" behind the key"),
            ("{a:}", "1:4: expected a value"),
            ("{a:1 b:2}", "1:6: expected \",\" or \"}\""),
            ("{a:1\n\n  b:2}", "3:3: expected \",\" or \"}\""),
            ("{,}", "1:2: expected a key or \"}\""),
            ("{1:2}", "1:2: expected a key or \"}\""),
            ("{a-b:2}", "1:3: expected \":\" behind the key"),
            ("[1 2]", "1:4: expected \",\" or \"]\""),
            ("[1,,2]", "1:4: expected a value"),
            ("[1", "1:3: expected \",\" or \"]\""),
            ("1 2", "1:3: expected nothing more behind the value"),
            ("yes", "1:1: expected a value; strings need quotes"),
            ("{a: off}", "1:5: expected a value; strings need quotes"),
            ("undefined", "1:1: expected a value; strings need quotes"),
            ("'a\nb'", "1:1: expected the end of the string on the same line"),
            ("[\"a]", "1:2: expected the end of the string on the same line"),
            ("/* a", "1:1: expected \"*/\" at the end of the comment"),
            ("/* a *", "1:1: expected \"*/\" at the end of the comment"),
            ("/ a", "1:1: expected a value"),
            ("'\\1'", "1:2: expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"),
            ("'\\01'", "1:2: expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"),
            ("'\\x4'", "1:5: expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"),
            ("'\\uD800'", "1:2: expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"),
            ("'\\uD800\\u0041'", "1:2: expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"),
            ("'\\uDC00'", "1:2: expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"),
            ("{a\\u002d:1}", "1:3: expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"),
            ("01", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("1abc", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("[ -]", "1:3: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("+-1", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            (".", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("1e", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("0x", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("0xfg", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("1_000", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("-Infinite", "1:1: expected a number such as 25, -1.5, 2e3 or 0xff"),
            ("[1e999]", "1:2: expected a smaller number"),
            ("0x10000000000000000", "1:1: expected a smaller number"),
            (String(repeating: "[", count: 33), "1:33: expected at most 32 levels of brackets"),
            (String(repeating: " ", count: 1_048_577), "1:1: expected at most 1048576 bytes"),
        ])
    func refusal(_ text: String, _ message: String) {
        let error = #expect(throws: JSON5Error.self) { try read(text) }
        #expect(error.map { "\($0.position.line):\($0.position.column): \($0.problem)" } == message)
    }

    @Test func thirtyTwoLevelsAreRead() throws {
        _ = try read(String(repeating: "[", count: 32) + String(repeating: "]", count: 32))
    }

    @Test(
        "Bytes that are not UTF-8 are refused at their place",
        arguments: [
            [0x80], [0xC0, 0x80], [0xC3], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF],
        ] as [[UInt8]])
    func invalidUTF8(_ bytes: [UInt8]) {
        let text = Array("[\n '\u{E9}".utf8) + bytes + Array("']".utf8)
        let error = #expect(throws: JSON5Error.self) { try JSON5Value(reading: text.span.octets) }
        // The place is that of the scalar before the wrong one at the most.
        #expect(error?.problem == .invalidUTF8)
        #expect(error?.position.line == 2)
    }
}
