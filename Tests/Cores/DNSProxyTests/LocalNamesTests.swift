import ByteAccess
import DNSMessage
import DNSProxy
import IPPacket
import LDNSMessage
import Provider
import TestSupport
import Testing

@Suite("Local records")
struct LocalNamesTests {
    @Test("J1: a record that does not go with others, or that no zone has, is refused, and all others stay")
    func refused() throws {
        var names = LocalNames()
        try names.add(.of("a.example. A 192.0.2.1"))
        try names.add(.of("www.example. CNAME a.example."))
        for (text, error) in [
            ("A.Example. 5 A 192.0.2.1", LocalRecordError.repeated), ("a.example. CNAME b.example.", .besidesAlias),
            ("www.example. A 192.0.2.1", .besidesAlias), ("WWW.example. CNAME b.example.", .besidesAlias),
            ("x.example. CH TXT x", .otherClass), ("x.example. TYPE253 \\# 0", .notOfAZone),
            ("x.example. TYPE255 \\# 0", .notOfAZone), ("x.example. TYPE252 \\# 0", .notOfAZone),
        ] {
            #expect(throws: error) { try names.add(.of(text)) }
        }
        try names.add(.of("www.example. RRSIG CNAME 8 2 300 20300101000000 20200101000000 1 example. AAAA"))
        try names.add(.of("*.example. A 192.0.2.2"))
        #expect(names.recordCount == 4 && names.nameCount == 3 && !names.isEmpty)
        let configuration = DNSProxyConfiguration.plain.with { $0.records = [.of("a. CH TXT x")] }
        #expect(throws: DNSProxyError.impossibleRecord(.otherClass)) { try configuration.check() }
    }

    @Test("J1: a name has as many records as there is room for, and no more")
    func many() throws {
        var names = LocalNames()
        let owner = try DomainName(parsing: "a.example")
        for number in 0..<LocalNames.maximumRecordCount {
            try names.add(
                ResourceRecord(owner: owner, type: .a, timeToLive: 1, data: bytes(UInt32(number))))
        }
        #expect(throws: LocalRecordError.tooMany) {
            try names.add(ResourceRecord(owner: owner, type: .a, timeToLive: 1, data: [255, 0, 0, 0]))
        }
    }

    @Test("J1: aliases are found among more octets than a message has")
    func large() throws {
        let texts = (0..<300).map { "t\($0).example. TXT \"\(String(repeating: "x", count: 250))\"" }
        var rig = try Rig(.local(texts + ["a.example. CNAME t7.example."]))
        #expect(try rig.ask(query("a.example", .txt)).answer.records.map(\.type) == [.cname, .txt])
    }

    @Test(
        "J1: records of one set have the shortest of their TTLs (RFC 2181 §5.2), and their signatures come when asked for"
    )
    func sets() throws {
        let signature = "a.example. 900 RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AAAA"
        var rig = try Rig(
            .local("a.example. 60 A 192.0.2.1", "a.example. 90 A 192.0.2.2", "a.example. 30 AAAA ::1", signature))
        let plain = try rig.ask(query("a.example")).answer
        #expect(
            plain.ttls(.a) == [60, 60] && plain.data(.rrsig).isEmpty && !plain.flags.contains(.authoritativeAnswer))
        let signed = try rig.ask(query("a.example", opt: opt(dnssecOK: true))).answer
        #expect(signed.records.map(\.type) == [.a, .a, .rrsig] && signed.dnssecOK)
        let absent = try rig.ask(query("a.example", .mx)).answer
        #expect(absent.ttls(.soa) == [30])
        #expect(rig.begun.isEmpty)
    }

    @Test("J1: an alias shares the question and the answer with those who ask for its target")
    func shared() throws {
        var rig = try Rig(.local("alias.example. CNAME far.example.net.", trusted: true))
        let first = try rig.ask(query("Alias.Example", opt: opt())).client
        let second = try rig.ask(query("FAR.example.net")).client
        let third = try rig.ask(query("alias.example"), by: .tcp).client
        #expect(rig.begun.count == 1)
        let sent = try #require(rig.open.last?.query)
        rig.deliver(reply(to: sent, flags: 0x81A0, [record(.a, ttl: 70, address(192, 0, 2, 1))]))
        let answer = try rig.answer(of: first)
        #expect(answer.records.map(\.owner) == ["Alias.Example.", "far.example.net."] && answer.hasOPT)
        #expect(answer.question == wire("Alias.Example") + [0, 1, 0, 1])
        #expect(try rig.answer(of: second).records.map(\.owner) == ["FAR.example.net."])
        #expect(try rig.answer(of: third).records.count == 2)
        rig.pass(.seconds(30))
        // What is kept is the target's answer; the alias is proved by nobody.
        let kept = try rig.ask(query("alias.example", flags: 0x0120)).answer
        #expect(kept.ttls(.a) == [40] && kept.ttls(.cname) == [300] && !kept.flags.contains(.authenticData))
        #expect(try rig.ask(query("far.example.net", flags: 0x0120)).answer.flags.contains(.authenticData))
        #expect(rig.begun.count == 1)
    }

    @Test("J1: answers with aliases are padded to the blocks that answers are padded to (RFC 8467 §4.1)")
    func padding() throws {
        var rig = try Rig(.local("alias.example. CNAME far.example.net."))
        let padded = query("alias.example", opt: opt(option(12, [0, 0, 0, 0])))
        let first = try rig.resolve(padded, by: .tls, [record(.a, ttl: 70, address(192, 0, 2, 1))])
        let second = try rig.ask(padded, by: .tls).answer
        for answer in [first, second] {
            #expect(answer.records.map(\.type) == [.cname, .a] && answer.bytes.count == 468)
        }
        #expect(try rig.ask(query("alias.example", opt: opt()), by: .tls).answer.bytes.count < 200)
    }

    @Test("J1: when nobody answers for a target, the question of the client is told so, or an old answer is given")
    func failures() throws {
        var rig = try Rig(.local("alias.example. CNAME far.example.net."))
        let client = try rig.ask(query("alias.example", opt: opt())).client
        rig.pass(.seconds(5))
        let failure = try rig.answer(of: client)
        #expect(failure.code == .serverFailure && failure.records.isEmpty && failure.error == .noReachableAuthority)
        #expect(failure.question == wire("alias.example") + [0, 1, 0, 1])
        rig.pass(.seconds(60))
        try rig.resolve(query("alias.example"), [record(.a, ttl: 70, address(192, 0, 2, 1))])
        rig.pass(.seconds(100))
        let late = try rig.ask(query("alias.example", opt: opt())).client
        rig.pass(.milliseconds(1800))
        let stale = try rig.answer(of: late)
        #expect(stale.records.map(\.type) == [.cname, .a] && stale.error == .staleAnswer)
    }

    @Test("J1: aliases of more steps than are followed fail, however they come about")
    func circles() throws {
        var rig = try Rig(.local("*.example. CNAME a.example."))
        #expect(try rig.ask(query("x.example")).answer.code == .serverFailure)
        #expect(try rig.ask(query("x.example", .cname)).answer.records.map(\.type) == [.cname])
        var names = LocalNames()
        try names.add(.of("*.example. CNAME a.example."))
        #expect(names.isEndless(from: try DomainName(parsing: "*.example")))
        #expect(!names.isEndless(from: try DomainName(parsing: "example")))
        let chain = (0..<17).map { "n\($0).example. CNAME n\($0 + 1).example." }
        var long = try Rig(.local(chain + ["n17.example. A 192.0.2.1"]))
        #expect(try long.ask(query("n0.example")).answer.code == .serverFailure)
        #expect(try long.ask(query("n1.example")).answer.records.count == 17)
    }

    @Test("J1: an answer that its aliases make too long for a message is a failure, and for a datagram is cut")
    func sizes() throws {
        var rig = try Rig(
            DNSProxyConfiguration.servers(.tcp).with { $0.records = [.of("alias.example. CNAME far.example.net.")] })
        let text = record(.txt, [255] + [UInt8](repeating: 65, count: 255))
        // Header and question have 33 octets; 244 records of 268 and one of 110 make the longest message.
        let most = [[UInt8]](repeating: text, count: 244) + [record(.txt, [97] + [UInt8](repeating: 66, count: 97))]
        let long = try rig.resolve(query("alias.example", .txt), by: .tcp, most)
        #expect(long.code == .serverFailure && long.records.isEmpty)
        #expect(try rig.ask(query("far.example.net", .txt), by: .tcp).answer.bytes.count == 65_535)
        var small = try Rig(.local("alias.example. CNAME far.example.net."))
        let many = (0..<90).map { record(.a, address(192, 0, 2, UInt8($0))) }
        let cut = try small.resolve(query("alias.example", opt: opt(size: 1232)), many)
        #expect(cut.flags.contains(.truncated) && cut.bytes.count <= 1232 && cut.hasOPT)
        #expect(cut.records.map(\.type) == [.cname])
    }
}

extension ResourceRecord {
    /// A record of a text that is one, with a TTL of 300 seconds unless it says otherwise.
    static func of(_ text: String) -> ResourceRecord {
        guard let record = try? ResourceRecord(parsing: text, defaultTimeToLive: 300) else {
            preconditionFailure("a test's record that is none: \(text)")
        }
        return record
    }
}

extension DNSProxyConfiguration {
    /// One server, and local records.
    static func local(_ records: String..., trusted: Bool = false) -> DNSProxyConfiguration {
        local(records, trusted: trusted)
    }

    static func local(_ records: [String], trusted: Bool = false) -> DNSProxyConfiguration {
        servers(.udp, trusted: trusted).with { $0.records = records.map { .of($0) } }
    }
}
