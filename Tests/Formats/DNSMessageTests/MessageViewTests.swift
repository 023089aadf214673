import ByteAccess
import DNSMessage
import IPPacket
import TestSupport
import Testing

@Suite struct MessageViewTests {
    @Test func `a header has the bits where RFC 1035 and RFC 2535 have them`() throws {
        let header = try DNSHeader(parsing: hex("1234 ffff 0001 0002 0003 0004").span.octets)
        #expect(header.id == 0x1234 && header.questionCount == 1 && header.answerCount == 2)
        #expect(header.authorityCount == 3 && header.additionalCount == 4)
        #expect(header.flags.opcode.rawValue == 15 && header.flags.responseCode.rawValue == 15)
        let bits: [(UInt16, DNSFlags)] = [
            (0x8000, .response), (0x0400, .authoritativeAnswer), (0x0200, .truncated), (0x0100, .recursionDesired),
            (0x0080, .recursionAvailable), (0x0040, .reserved), (0x0020, .authenticData), (0x0010, .checkingDisabled),
        ]
        for (bit, flag) in bits { #expect(flag.rawValue == bit) }
        var flags: DNSFlags = [.response, .recursionDesired]
        flags.opcode = .update
        flags.responseCode = .refused
        #expect(flags.rawValue == 0xA905)
        let bytes = written { output in
            header.store(into: &output)
            return 12
        }
        #expect(bytes == hex("1234 ffff 0001 0002 0003 0004"))
    }

    @Test func `records are walked by section, with names, addresses and lifetimes`() throws {
        let bytes = SampleMessages.all[2].bytes
        let view = try DNSMessageView(checking: bytes.span.octets)
        #expect(view.question?.name.presentation == "example.com.")
        #expect(view.question?.type == .a && view.question?.recordClass == .internet)
        var lines: [String] = []
        var records = view.records
        while let record = records.next() {
            let data = record.address.map(\.description) ?? record.target?.presentation ?? "-"
            lines.append(
                "\(record.section) \(record.owner.presentation) \(record.timeToLive) \(record.type.rawValue) \(data)")
        }
        #expect(
            lines == [
                "answer example.com. 100 5 www.example.com.", "answer www.example.com. 300 1 192.0.2.1",
                "answer www.example.com. 300 1 192.0.2.2", "authority example.com. 3600 2 ns.example.com.",
                "additional ns.example.com. 3600 28 2001:db8::53", "additional . 0 41 -",
            ])
        var authority = view.records(in: .authority)
        #expect(authority.next()?.type == .ns)
        let isOver = authority.next() == nil
        #expect(isOver)
        #expect(view.canonicalName?.presentation == "www.example.com.")
        #expect(view.answerKind == .records)
        #expect(view.cacheLifetime == .positive(100))
    }

    @Test func `bytes behind the message are no part of it`() throws {
        for sample in SampleMessages.all {
            let bytes = sample.bytes + [UInt8](repeating: 0xAA, count: 100)
            #expect(try DNSMessageView(checking: bytes.span.octets).bytes.byteCount == sample.bytes.count)
        }
        #expect(messageError([UInt8](repeating: 0, count: 65_535)) == nil)
        #expect(messageError([UInt8](repeating: 0, count: 65_536)) == .messageTooLong)
    }

    @Test func `an SOA record shows its names and numbers`() throws {
        let bytes = SampleMessages.all[3].bytes
        let view = try DNSMessageView(checking: bytes.span.octets)
        var records = view.records(in: .authority)
        let record = records.next()
        guard let authority = record?.startOfAuthority else { throw Absent() }
        #expect(authority.primaryServer.presentation == "a.com.")
        #expect(authority.mailbox.presentation == "b.com.")
        #expect([authority.serial, authority.refresh, authority.retry, authority.expire] == [1, 1800, 900, 604_800])
        #expect(authority.minimum == 86_400)
    }

    @Test func `a TTL with its highest bit set counts as zero`() throws {
        let bytes = try answer([record("c00c", 1, ttl: 0x8000_0000, [192, 0, 2, 1])])
        let view = try DNSMessageView(checking: bytes.span.octets)
        var records = view.records
        #expect(records.next()?.timeToLive == 0)
        #expect(view.cacheLifetime == .positive(0))
    }

    @Test func `types that are not known are opaque`() throws {
        let bytes = try answer([record("c00c", 65_400, hex("c0ff 40 80 ff"))])
        #expect(messageError(bytes) == nil)
    }

    @Test func `a query with any octets in its name is in order, and so is the root`() throws {
        for name in ["\\000.example", "a\\.b", "\\255\\128", "_443._tcp.example", "a\\032b", "."] {
            #expect(queryError(try query(name)) == nil)
        }
    }

    @Test func `an IXFR query may bring an SOA record`() throws {
        var bytes = try query("example.com", .ixfr)
        bytes[9] = 1
        bytes += hex("c00c 0006 0001 00000000 0018 c00c c00c 00000001 00000000 00000000 00000000 00000000")
        #expect(queryError(bytes) == nil)
    }

    @Test func `an answer is checked against its question`() throws {
        let asked = try query("Example.com")
        let view = try QueryView(checking: asked.span.octets)
        func mismatch(_ bytes: [UInt8], matchingCase: Bool = false) throws -> AnswerMismatch? {
            let answer = try DNSMessageView(checking: bytes.span.octets)
            do {
                try answer.check(isAnswerTo: view.question, id: 0xABCD, matchingCase: matchingCase)
                return nil
            } catch {
                return error
            }
        }
        #expect(try mismatch(query("example.com", flags: 0x8180)) == nil)
        #expect(try mismatch(query("Example.com", flags: 0x8180), matchingCase: true) == nil)
        #expect(try mismatch(query("example.com", flags: 0x8180), matchingCase: true) == .otherCase)
        #expect(try mismatch(query("example.com")) == .notAnAnswer)
        #expect(try mismatch(query("example.com", id: 1, flags: 0x8180)) == .otherID)
        #expect(try mismatch(query("example.com", flags: 0x9180)) == .otherOpcode)
        #expect(try mismatch(query("example.net", flags: 0x8180)) == .otherQuestion)
        #expect(try mismatch(query("example.com", .aaaa, flags: 0x8180)) == .otherQuestion)
        #expect(try mismatch(hex("abcd 8181 0000 0000 0000 0000")) == .noQuestion)
    }

    @Test func `an answer that repeats the question octet by octet is told from all others`() throws {
        let asked = try query("Example.com")
        func repeats(_ bytes: [UInt8], _ query: [UInt8]) throws -> Bool {
            try DNSMessageView(checking: bytes.span.octets).repeatsQuestion(of: query.span.octets)
        }
        #expect(try repeats(query("Example.com", flags: 0x8180), asked))
        #expect(try repeats(query("Example.com", flags: 0x8183, opt: opt()), asked))
        #expect(try !repeats(query("example.com", flags: 0x8180), asked))
        #expect(try !repeats(asked, asked))
        #expect(try !repeats(query("Example.com", id: 1, flags: 0x8180), asked))
        #expect(try !repeats(query("Example.com", flags: 0x9180), asked))
        #expect(try !repeats(query("Example.net", flags: 0x8180), asked))
        #expect(try !repeats(query("Example.com", .aaaa, flags: 0x8180), asked))
        #expect(try !repeats(hex("abcd 8181 0000 0000 0000 0000"), asked))
        // Nothing was asked yet.
        #expect(try !repeats(query("Example.com", flags: 0x8180), []))
    }

    @Test func `only the header's four bits are the response code without EDNS, twelve bits with it`() throws {
        let plain = try query("example.com", flags: 0x8183)
        #expect(try DNSMessageView(checking: plain.span.octets).responseCode == .nameError)
        var extended = try query("example.com", flags: 0x8180, opt: opt())
        extended[extended.count - 6] = 1
        #expect(try DNSMessageView(checking: extended.span.octets).responseCode == .badVersion)
    }
}
