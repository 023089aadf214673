import ByteAccess
import DNSMessage
import TestSupport
import Testing

@Suite("Plain queries")
struct PlainQueryTests {
    /// What the view says must be what the short reading says, when it says anything.
    private static func compare(_ bytes: [UInt8]) -> Bool {
        guard let plain = PlainQuery(bytes.span.octets) else { return false }
        guard let view = try? QueryView(checking: bytes.span.octets) else {
            Issue.record("read although it is not in order: \(bytes)")
            return true
        }
        #expect(plain.id == view.header.id && plain.flags == view.header.flags)
        #expect(plain.type == view.question.type && plain.recordClass == view.question.recordClass)
        #expect(plain.questionEnd == view.questionLayout.endOffset)
        let size: UInt16? = view.edns?.udpPayloadSize
        #expect(plain.hasEDNS == (size != nil) && plain.udpPayloadSize == size ?? 0)
        #expect(plain.dnssecOK == view.dnssecOK)
        #expect(plain.answerLimit == view.answerLimit())
        #expect(plain.understandsAuthenticData == view.understandsAuthenticData)
        let optionCount: Int? = view.edns?.optionBytes.byteCount
        #expect(optionCount ?? 0 == 0)
        return true
    }

    @Test("Usual queries are read, with EDNS and without, by names of all lengths")
    func usual() throws {
        let label = String(repeating: "a", count: 63)
        let longest = "\(label).\(label).\(label).\(label.dropLast(2))"
        for name in [".", "a", "example.com", "a.\(label).example", longest] {
            #expect(Self.compare(try query(name)))
            #expect(Self.compare(try query(name, .https, flags: 0x0130, opt: opt(dnssecOK: true))))
            #expect(Self.compare(try query(name, .any, flags: 0x07FF, opt: opt(size: 0))))
            #expect(Self.compare(try query(name, opt: opt(size: 65_535)) + [1, 2, 3]))
        }
    }

    @Test("All else is left to the view: answers, other opcodes, counts and versions, options, cut queries")
    func unusual() throws {
        let plain = try query("example.com", opt: opt())
        for flags: UInt16 in [0x8100, 0x0900, 0x7900] { #expect(!Self.compare(try query("example.com", flags: flags))) }
        for offset in [4, 5, 6, 7, 8, 9, 10, 11] {
            var other = plain
            other[offset] = 2
            #expect(!Self.compare(other))
        }
        for options in [[0, 10, 0, 0], [0]] as [[UInt8]] {
            #expect(!Self.compare(try query("example.com", opt: opt(options))))
        }
        #expect(!Self.compare(try query("example.com", opt: opt(version: 1))))
        #expect(!Self.compare(try query("example.com", opt: [1, 97] + opt())))
        for count in plain.indices { #expect(!Self.compare(Array(plain[..<count]))) }
        let label: [UInt8] = [63] + [UInt8](repeating: 97, count: 63)
        #expect(!Self.compare(Array(plain[..<11]) + [0] + label + label + label + label + [0, 0, 1, 0, 1]))
        #expect(!Self.compare([UInt8](repeating: 0, count: 65_536)))
    }

    @Test("Of queries that were changed by chance, and of all malformed ones, both readings say the same")
    func changed() throws {
        for malformed in MalformedMessage.queries { _ = Self.compare(malformed.bytes) }
        for sample in SampleMessages.all { _ = Self.compare(sample.bytes) }
        var generator = SeededGenerator(seed: 11)
        let queries = [
            try query("www.example.com"), try query("example.com", opt: opt()), try query("a.b.c.d.e.f", .aaaa),
            try query("example.com", opt: opt([0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8], dnssecOK: true)),
        ]
        var readings = 0
        for _ in 0..<50_000 {
            var bytes = queries[Int.random(in: queries.indices, using: &generator)]
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                let values: [UInt8] = [0, 1, 41, 63, 64, 0xC0, 0xFF, UInt8.random(in: 0...255, using: &generator)]
                bytes[Int.random(in: bytes.indices, using: &generator)] =
                    values[Int.random(in: values.indices, using: &generator)]
            }
            if Int.random(in: 0..<8, using: &generator) == 0 {
                bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
            }
            if Self.compare(bytes) { readings += 1 }
        }
        #expect(readings > 10_000)
    }

    @Test("TTLs are changed by both ways alike, and records that are cut are found out")
    func aging() throws {
        for sample in SampleMessages.all {
            let bytes = sample.bytes
            guard let view = try? DNSMessageView(checking: bytes.span.octets) else { continue }
            var records = 0
            var cursor = view.records
            while cursor.next() != nil { records += 1 }
            let start = view.questionLayout?.endOffset ?? DNSHeader.byteCount
            let count = view.bytes.byteCount
            for seconds: UInt32 in [1, 299, 300, 301, .max] {
                var (one, other) = (Array(bytes[..<count]), Array(bytes[..<count]))
                try one.edit { (message) throws(DNSMessageError) in try MessageEditing.age(&message, by: seconds) }
                let isWhole = other.edit { MessageEditing.age(&$0, records: records, from: start, by: seconds) }
                #expect(isWhole && one == other)
            }
            for cut in start..<count where records > 0 {
                var bytes = Array(bytes[..<cut])
                let isWhole = bytes.edit { MessageEditing.age(&$0, records: records, from: start, by: 1) }
                #expect(!isWhole)
            }
        }
    }
}
