import ByteAccess
import DNSMessage
import TestSupport
import Testing

@Suite struct AnswerKindTests {
    private static let soa = record(
        "c014", 6, ttl: 900, hex("01 61 c014 01 62 c014 00000001 00000708 00000384 00093a80 00000258"))
    private static let alias = record("c00c", 5, ttl: 60, hex("03 777777 c00c"))

    private func lifetime(_ bytes: [UInt8]) throws -> CacheLifetime {
        try DNSMessageView(checking: bytes.span.octets).cacheLifetime
    }

    @Test func `a negative answer is kept for the smaller one of the SOA record's TTL and MINIMUM`() throws {
        #expect(try lifetime(answer([], authority: [Self.soa], flags: 0x8183)) == .negative(600))
        #expect(try lifetime(answer([], authority: [Self.soa])) == .negative(600))
        let shortLived = record("c014", 6, ttl: 30, Array(Self.soa[12...]))
        #expect(try lifetime(answer([], authority: [shortLived])) == .negative(30))
    }

    @Test func `aliases in front of a negative answer bound its time`() throws {
        #expect(try lifetime(answer([Self.alias], authority: [Self.soa], flags: 0x8183)) == .negative(60))
        #expect(try lifetime(answer([Self.alias], authority: [Self.soa])) == .negative(60))
    }

    @Test func `a negative answer without an SOA record is not kept`() throws {
        #expect(try lifetime(answer([], flags: 0x8183)) == .none)
        #expect(try lifetime(answer([])) == .none)
        #expect(try lifetime(answer([], authority: [record("c00c", 2, hex("c00c"))])) == .none)
    }

    @Test func `a truncated answer is not kept, and a failure is told apart`() throws {
        #expect(try lifetime(answer([record("c00c", 1, [192, 0, 2, 1])], flags: 0x8380)) == .none)
        #expect(try lifetime(answer([], flags: 0x8182)) == .failure)
        #expect(try lifetime(answer([], flags: 0x8185)) == .failure)
    }

    @Test func `the smallest TTL of all sections counts, but not that of OPT`() throws {
        let address = record("c00c", 1, ttl: 300, [192, 0, 2, 1])
        let server = record("c00c", 2, ttl: 200, hex("c00c"))
        #expect(try lifetime(answer([address], authority: [server])) == .positive(200))
        #expect(try lifetime(answer([address], additional: [opt()])) == .positive(300))
    }

    @Test func `aliases are followed in any order, and only for the names they belong to`() throws {
        // www.example.com is an alias of the question's name in the second record, which is written first.
        let last = record("03 777777 c00c", 1, ttl: 300, [192, 0, 2, 1])
        let first = record("c00c", 5, ttl: 60, hex("c01d"))
        let bytes = try answer([last, first])
        let view = try DNSMessageView(checking: bytes.span.octets)
        #expect(view.canonicalName?.presentation == "www.example.com.")
        #expect(view.answerKind == .records)
        let foreign = try answer([record("01 78 c00c", 1, [192, 0, 2, 1])])
        #expect(try DNSMessageView(checking: foreign.span.octets).answerKind == .noData)
    }

    @Test func `aliases that go round in circles come to an end`() throws {
        let loop = try answer([record("c00c", 5, hex("c00c"))])
        #expect(try DNSMessageView(checking: loop.span.octets).answerKind == .endlessAliases)
        #expect(try lifetime(loop) == .none)
        // Asked for itself, an alias is the answer.
        let asked = try answer([record("c00c", 5, hex("c00c"))], type: .cname)
        #expect(try DNSMessageView(checking: asked.span.octets).answerKind == .records)
    }

    @Test func `keys differ by type, class, DO and CD, and not by the case of letters`() throws {
        func key(_ name: String, _ type: RecordType = .a, flags: UInt16 = 0x0100, opt: [UInt8]? = nil) throws
            -> CacheKey
        {
            let bytes = try query(name, type, flags: flags, opt: opt)
            return CacheKey(try QueryView(checking: bytes.span.octets))
        }
        let plain = try key("example.com")
        #expect(try plain == key("EXAMPLE.com") && plain.hashValue == key("eXample.com", opt: opt()).hashValue)
        #expect(try plain != key("example.net"))
        #expect(try plain != key("example.com", .aaaa))
        #expect(try plain != key("example.com", flags: 0x0110))
        #expect(try plain != key("example.com", opt: opt(dnssecOK: true)))
        #expect(Array(plain.bytes) == hex("00 0001 0001 \(SampleMessages.example)"))
        #expect(try key(String(repeating: "a.", count: 127)).bytes.byteCount == CacheKey.maximumByteCount)
    }
}
