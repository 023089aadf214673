import FoundationEssentials
import JSON5
import Testing

@testable import LinuxHost

/// What our messages and records are made of, and what they may be made of some day.
private struct Sample: Codable, Equatable {
    var boolean = true
    var signed: Int64 = -5
    var small: [UInt8] = [0, 127, 255]
    var limits = [Int.min, Int.max]
    var text = "a\"b\\c\n\u{1}é😀"
    var missing: String?
    var present: String? = "x"
    var nested: [[String?]] = [["a", nil], []]
    var table = ["k": 1, "": 2]
    var choice = Choice.named(first: 1, second: nil)
    var choices: [Choice] = [.plain, .unnamed("u")]
    var word = Word.yes
    var pair = Pair(first: 3, second: "three")

    enum Choice: Codable, Equatable {
        case plain
        case unnamed(String)
        case named(first: UInt16, second: Bool?)
    }

    enum Word: String, Codable {
        case yes
    }
}

/// One that writes itself without names, as `Duration` does.
private struct Pair: Codable, Equatable {
    var first: Int
    var second: String

    init(first: Int, second: String) {
        (self.first, self.second) = (first, second)
    }

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        first = try container.decode(Int.self)
        let isNil = try container.decodeNil()
        let nested = try container.nestedContainer(keyedBy: Key.self)
        second = try nested.decode(String.self, forKey: .second)
        guard !isNil, container.isAtEnd, container.currentIndex == 2 else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "more than a pair")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(first)
        var nested = container.nestedContainer(keyedBy: Key.self)
        try nested.encode(second, forKey: .second)
    }

    private enum Key: CodingKey {
        case second
    }
}

private class Base: Codable {
    var base = 1
}

private final class Derived: Base {
    var derived = 2

    override init() { super.init() }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        derived = try container.decode(Int.self, forKey: .derived)
        try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(derived, forKey: .derived)
        try super.encode(to: container.superEncoder())
    }

    private enum Key: CodingKey {
        case derived
    }
}

@Suite struct JSONLineTests {
    @Test func linesAreThoseOfFoundation() throws {
        let sample = Sample()
        let line = try JSONLine.encode(sample)
        #expect(!line.contains(UInt8(ascii: "\n")))
        #expect(try JSONLine.decode(Sample.self, from: line) == sample)
        #expect(try JSONDecoder().decode(Sample.self, from: Data(line)) == sample)
        #expect(try JSONLine.decode(Sample.self, from: Array(JSONEncoder().encode(sample))) == sample)
    }

    @Test func superclassesHaveTheirPlace() throws {
        let derived = Derived()
        (derived.base, derived.derived) = (7, 8)
        let line = try JSONLine.encode(derived)
        #expect(String(decoding: line, as: UTF8.self) == #"{"derived":8,"super":{"base":7}}"#)
        let back = try JSONLine.decode(Derived.self, from: line)
        #expect(back.base == 7)
        #expect(back.derived == 8)
        #expect(try JSONDecoder().decode(Derived.self, from: Data(line)).base == 7)
    }

    @Test func whatHasNoExactFormIsRefused() {
        #expect(throws: JSONLineError.notEncodable) { try JSONLine.encode(UInt64.max) }
        #expect(throws: JSONLineError.notEncodable) { try JSONLine.encode(["a": 0.5]) }
        #expect(throws: JSONLineError.tooLong) { try JSONLine.encode(String(repeating: "a", count: 1 << 20)) }
    }

    @Test(arguments: [
        (#"{"first":1}"#, "second"), (#"{"first":-1,"second":"x"}"#, "first"),
        (#"{"first":65536,"second":"x"}"#, "first"),
        (#"{"first":1.0,"second":"x"}"#, "first"), (#"{"first":true,"second":"x"}"#, "first"),
        (#"{"first":1,"second":null}"#, "second"), (#"{"first":1,"second":"x","third":[["a"],["b",3]]}"#, "third.1.1"),
        (#"{"first":1,"second":"x","third":{}}"#, "third"), ("[]", ""), ("3", ""), ("null", ""),
    ])
    func saysWhereALineIsWrong(line: String, place: String) {
        struct Message: Codable {
            var first: UInt16
            var second: String
            var third: [[String]]?
        }
        #expect(throws: JSONLineError.notDecodable(at: place)) {
            try JSONLine.decode(Message.self, from: Array(line.utf8))
        }
    }

    @Test func whatIsNotJSONIsRefusedWithItsPlace() {
        for line in ["", "{", "{\"a\":}", "\u{0}", String(repeating: "[", count: 100_000)] {
            let error = #expect(throws: JSONLineError.self) { try JSONLine.decode([Int].self, from: Array(line.utf8)) }
            guard case .notJSON = error else {
                Issue.record("\(line.prefix(20)): \(String(describing: error))")
                continue
            }
        }
    }

    /// An array that ends too early is an error, not a trap.
    @Test func anArrayThatIsTooShortIsRefused() {
        for line in ["[]", "[1]", "[1,null]", "[1,{}]", "[1,{\"second\":\"s\"},3]"] {
            #expect(throws: JSONLineError.self) { try JSONLine.decode(Pair.self, from: Array(line.utf8)) }
        }
    }
}
