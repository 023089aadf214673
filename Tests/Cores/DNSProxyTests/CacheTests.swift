import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("Cache")
struct CacheTests {
    @Test("F1: the TTL of each record counts down by itself, that of an alias too")
    func timesToLive() throws {
        var rig = try Rig()
        let alias = record(.cname, ttl: 871, [1, 0x62, 0])
        let address = record(.a, owner: "b", ttl: 563, address(192, 0, 2, 1))
        let first = try rig.resolve(query("example.com"), [alias, address])
        #expect(first.records.map(\.ttl) == [871, 563])
        rig.pass(.seconds(2))
        #expect(try rig.ask(query("example.com")).answer.records.map(\.ttl) == [869, 561])
        rig.pass(.milliseconds(560_900))
        #expect(try rig.ask(query("example.com")).answer.records.map(\.ttl) == [309, 1])
        rig.pass(.milliseconds(100))
        _ = try rig.ask(query("example.com")).client
    }

    @Test(
        "F2, F3: a TTL of 0, or with its highest bit set, is for the one who asked and never served again",
        arguments: [0, 0x8000_0000, 0xFFFF_FFFF] as [UInt32])
    func unkept(ttl: UInt32) throws {
        var rig = try Rig()
        let answer = try rig.resolve(query("example.com"), [record(.a, ttl: ttl, address(192, 0, 2, 1))])
        #expect(answer.data(.a).count == 1 && answer.ttls(.a) == [0])
        _ = try rig.ask(query("example.com")).client
    }

    @Test(
        "F4: that a name or type does not exist is kept for the smaller one of TTL and MINIMUM, three hours at most; the SOA record's TTL counts down",
        arguments: [(300, 60, 60), (60, 300, 60), (90_000, 86_400, 10_800)] as [(UInt32, UInt32, UInt64)])
    func negative(ttl: UInt32, minimum: UInt32, kept: UInt64) throws {
        for flags: UInt16 in [0x8180, 0x8183] {
            var rig = try Rig()
            let authority = [soa("example.com", ttl: ttl, minimum: minimum)]
            let first = try rig.resolve(query("x.example.com"), flags: flags, authority: authority)
            #expect(first.ttls(.soa) == [UInt32(kept)])
            rig.pass(.seconds(10))
            let second = try rig.ask(query("x.example.com")).answer
            #expect(second.code.rawValue == flags & 0xF)
            #expect(second.ttls(.soa) == [UInt32(kept) - 10])
            rig.pass(.seconds(kept - 10))
            _ = try rig.ask(query("x.example.com")).client
        }
    }

    @Test("F5: a negative answer without an SOA record is not kept")
    func negativeWithoutSOA() throws {
        var rig = try Rig()
        #expect(try rig.resolve(query("x.example.com"), flags: 0x8183).code == .nameError)
        _ = try rig.ask(query("x.example.com")).client
    }

    @Test("F6: an alias whose target does not exist is kept for the shortest time of all, with the code of the target")
    func aliasToNothing() throws {
        var rig = try Rig()
        let answers = [record(.cname, ttl: 40, [1, 0x62, 0])]
        try rig.resolve(query("example.com"), flags: 0x8183, answers, authority: [soa("", ttl: 300, minimum: 300)])
        rig.pass(.seconds(39))
        let answer = try rig.ask(query("example.com")).answer
        #expect(answer.code == .nameError && answer.ttls(.cname) == [1] && answer.ttls(.soa) == [261])
        rig.pass(.seconds(1))
        _ = try rig.ask(query("example.com")).client
    }

    @Test("F7: failures are kept for a second, then for longer, and never block an answer that came")
    func failures() throws {
        var rig = try Rig()
        for seconds in [1, 2, 4] as [UInt64] {
            let client = try rig.ask(query("example.com", opt: opt())).client
            rig.fail(.unreachable)
            #expect(try rig.answer(of: client).code == .serverFailure)
            rig.pass(.milliseconds(seconds * 1000 - 1))
            #expect(try rig.ask(query("example.com", opt: opt())).answer.error == .cachedError)
            rig.pass(.milliseconds(1))
        }
        #expect(try rig.resolve(query("example.com"), [record(.a, address(192, 0, 2, 1))]).code == .noError)
        #expect(try rig.ask(query("example.com")).answer.code == .noError)
    }

    @Test(
        "F10: answers stay within the bytes that there are, an answer too large drives out no other, and names can be flushed"
    )
    func bounds() throws {
        var rig = try Rig(.servers(.tcp).with { $0.cacheByteCount = 20_000 })
        let address = record(.a, ttl: 3600, address(192, 0, 2, 1))
        try rig.resolve(query("kept.example"), [address])
        let text = record(.txt, ttl: 3600, [255] + [UInt8](repeating: 65, count: 255))
        try rig.resolve(query("big.example", .txt), by: .tcp, [[UInt8]](repeating: text, count: 40))
        #expect(try rig.ask(query("kept.example")).answer.data(.a).count == 1)
        for number in 0..<1000 {
            try rig.resolve(query("n\(number).example"), [address])
            // What is asked for again and again stays.
            if number % 10 == 0 { #expect(try rig.ask(query("kept.example")).answer.data(.a).count == 1) }
            let status = rig.provider.status(at: rig.now)
            #expect(status.cacheUsedByteCount <= status.cacheByteCount && status.cacheByteCount <= 20_000)
        }
        #expect(rig.provider.status(at: rig.now).cachedAnswers > 50)
        #expect(rig.provider.flushCache(of: try DomainName(parsing: "KEPT.example")) == 1)
        _ = try rig.ask(query("kept.example")).client
        #expect(rig.provider.flushCache() > 50)
        #expect(rig.provider.status(at: rig.now).cachedAnswers == 0)
    }

    @Test("F11: new rules act at once on answers that are kept, both ways")
    func rulesOnKeptAnswers() throws {
        let plain = DNSProxyConfiguration.plain
        let blocking = try plain.with(rules: "||tracker.example^")
        var rig = try Rig(plain)
        let alias = record(.cname, ttl: 600, wire("x.tracker.example"))
        let address = record(.a, owner: "x.tracker.example", ttl: 600, address(192, 0, 2, 1))
        try rig.resolve(query("www.example"), [alias, address])
        try rig.provider.reload(blocking, at: rig.now)
        #expect(try rig.ask(query("www.example")).answer.data(.a) == [[0, 0, 0, 0]])
        try rig.provider.reload(plain, at: rig.now)
        #expect(try rig.ask(query("www.example")).answer.data(.a) == [[192, 0, 2, 1]])
        #expect(rig.begun.count == 1)
    }

    @Test("F12: records of other names are relayed, and kept for the question that was asked alone")
    func otherNames() throws {
        var rig = try Rig()
        let other = record(.a, owner: "bank.example", ttl: 600, address(192, 0, 2, 66))
        let answer = try rig.resolve(
            query("www.example"), [record(.a, address(192, 0, 2, 1))], additional: [other])
        #expect(answer.records.count == 2)
        _ = try rig.ask(query("bank.example")).client
    }

    @Test("D9: what HTTP says about an answer's age is taken off, and its lifetime is a limit")
    func freshness() throws {
        var rig = try Rig(.servers(.https))
        let (client, sent) = try rig.forward(query("example.com"))
        rig.deliver(
            reply(to: sent, [record(.a, ttl: 300, address(192, 0, 2, 1))]),
            freshness: AnswerFreshness(age: 100, lifetime: 50))
        #expect(try rig.answer(of: client).ttls(.a) == [50])
        rig.pass(.seconds(50))
        _ = try rig.ask(query("example.com")).client
    }

    @Test("A cache of no bytes keeps nothing")
    func noCache() throws {
        var rig = try Rig(.plain.with { $0.cacheByteCount = 0 })
        try rig.resolve(query("example.com"), [record(.a, address(192, 0, 2, 1))])
        _ = try rig.ask(query("example.com")).client
        #expect(rig.provider.status(at: rig.now).cacheByteCount == 0)
    }
}
