import ByteAccess
import FoundationEssentials
import JSON5
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct JSONTextTests {
    /// Each scalar that RFC 8259 treats in a way of its own, those that other formats do, and the ends of each length in UTF-8.
    private static let text = String(
        String.UnicodeScalarView(
            (0...0x9F).compactMap(Unicode.Scalar.init)
                + [0x7FF, 0x800, 0x2028, 0x2029, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]
                .compactMap(Unicode.Scalar.init)))

    @Test func escapesWhatRFC8259Section7Requires() {
        #expect(JSONText.string("a\"b\\c/d").text == #""a\"b\\c/d""#)
        #expect(JSONText.string("\n\r\t\u{0}\u{1F}").text == #""\n\u000d\u0009\u0000\u001f""#)
        #expect(JSONText.object([("\"\n", .null)]).text == #"{"\"\n":null}"#)
    }

    @Test func writesEveryKindOfValue() {
        let value = JSONText.object([
            ("b", .array([.boolean(true), .boolean(false), .null, .array([]), .object([])])), ("a", .number(-7)),
            ("c", .number(UInt64.max)), ("d", .optional(UInt16(9))), ("e", .optional(Int?.none)), ("f", .optional("x")),
            ("g", .strings([1, 2])), ("h", .optional(-1)),
        ])
        #expect(
            value.text
                == #"{"b":[true,false,null,[],{}],"a":-7,"c":18446744073709551615,"d":9,"e":null,"f":"x","g":["1","2"],"h":-1}"#
        )
    }

    @Test func otherReadersReadTheSameText() throws {
        let line = JSONText.array([.string(Self.text)]).text
        #expect(!line.utf8.contains(UInt8(ascii: "\n")))
        let ours = try JSON5Value(reading: line.utf8Span.span.octets)
        guard case .array(let elements) = ours.content, elements.count == 1 else {
            Issue.record("not an array of one")
            return
        }
        #expect(elements[0].content == .string(Self.text))
        #expect(try JSONDecoder().decode([String].self, from: Data(line.utf8)) == [Self.text])
        let program = "import json,sys; print(','.join(str(ord(c)) for c in json.load(open(sys.argv[1]))[0]))"
        let scalars = try inTemporaryFolder { folder in
            try writeFile(line, to: "\(folder)/line", mode: 0o600)
            return try output(of: "python3", "-X", "utf8", "-c", program, "\(folder)/line")
        }
        #expect(scalars == Self.text.unicodeScalars.map { "\($0.value)" }.joined(separator: ",") + "\n")
    }
}
