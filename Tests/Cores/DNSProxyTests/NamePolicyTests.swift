import DNSMessage
import DNSProxy
import IPPacket
import Provider
import Testing

@Suite("Policy about names")
struct NamePolicyTests {
    @Test("G7: the names of Private Relay do not exist where it is blocked, whatever a route says")
    func privateRelay() throws {
        let configuration = DNSProxyConfiguration(
            upstreams: DNSProxyConfiguration.servers(.udp, .udp).upstreams,
            routes: [
                DomainRoute(domains: [try DomainName(parsing: "icloud.com")], upstreams: [UpstreamID(index: 1)])
            ])
        var rig = try Rig(configuration.with { $0.blocksPrivateRelay = true })
        for name in ["mask.icloud.com", "MASK-H2.icloud.com", "x.mask.icloud.com"] {
            let answer = try rig.ask(query(name, .https, opt: opt())).answer
            #expect(answer.code == .nameError && answer.records.map(\.type) == [.soa] && answer.error == .blocked)
        }
        _ = try rig.ask(query("www.icloud.com")).client
        var open = try Rig(configuration)
        _ = try open.ask(query("mask.icloud.com")).client
    }

    @Test("G8: names of allowed domains may lead to the inside, from the server, from the cache and when too old")
    func rebinding() throws {
        let allowed = try [DomainName(parsing: "inside.example")]
        var rig = try Rig(DNSProxyConfiguration.plain.with { $0.rebindingAllowed = allowed })
        let inside = record(.a, ttl: 60, address(10, 1, 2, 3))
        #expect(try rig.resolve(query("a.inside.example"), [inside]).data(.a) == [[10, 1, 2, 3]])
        #expect(try rig.resolve(query("a.example", opt: opt()), [inside]).error == .blocked)
        #expect(try rig.ask(query("A.Inside.example")).answer.data(.a) == [[10, 1, 2, 3]])
        rig.pass(.seconds(100))
        let client = try rig.ask(query("a.inside.example")).client
        rig.pass(.milliseconds(1800))
        #expect(try rig.answer(of: client).data(.a) == [[10, 1, 2, 3]])
        // Where it is not allowed any more, what is kept is held back too.
        try rig.provider.reload(.plain, at: rig.now)
        #expect(try rig.ask(query("a.inside.example", opt: opt())).answer.error == .blocked)
    }

    @Test("I5: what blocks is named, and the rule itself is not")
    func sources() throws {
        var rig = try Rig(try DNSProxyConfiguration.plain.with(rules: "||ads.example^"))
        let direct = try rig.ask(query("x.ads.example", opt: opt())).answer
        #expect(direct.error == .blocked && direct.holds("rules.inline") && !direct.holds("||"))
        #expect(try NameRule(parsing: "||a.example^").source == .inline)
    }

    @Test("F10: flushing a name takes what is below it, and nothing beside it")
    func flush() throws {
        var rig = try Rig()
        let found = record(.a, ttl: 3600, address(192, 0, 2, 1))
        let names = ["example.com", "www.example.com", "a.b.EXAMPLE.com", "example.org", "notexample.com"]
        for name in names { try rig.resolve(query(name), [found]) }
        #expect(rig.provider.flushCache(of: try DomainName(parsing: "Example.com")) == 3)
        #expect(rig.provider.flushCache(of: try DomainName(parsing: "example.com")) == 0)
        #expect(rig.provider.status(at: rig.now).cachedAnswers == 2)
        #expect(rig.provider.flushCache(of: DomainName()) == 2)
    }

    @Test("G9: that there is no such name is what a question for IPv4 may find after one for IPv6 found nothing")
    func absentName() throws {
        var configuration = DNSProxyConfiguration.plain
        configuration.dns64 = .prefix(try IPPrefix(parsing: "64:ff9b::/96"))
        var rig = try Rig(configuration)
        let nothing = [soa("example.com", ttl: 300, minimum: 300)]
        let (client, sent) = try rig.forward(query("x.example.com", .aaaa))
        rig.deliver(reply(to: sent, authority: nothing))
        rig.deliver(reply(to: try #require(rig.open.last?.query), flags: 0x8183, authority: nothing))
        let answer = try rig.answer(of: client)
        #expect(answer.code == .nameError && answer.records.map(\.type) == [.soa])
        #expect(try rig.ask(query("x.example.com", .aaaa)).answer.code == .nameError)
    }

    @Test("G9: the names of ipv4only.arpa's addresses are known while there is a prefix, and those beside are not")
    func pointers() throws {
        var configuration = DNSProxyConfiguration.plain
        configuration.dns64 = .prefix(try IPPrefix(parsing: "64:ff9b::/96"))
        var rig = try Rig(configuration)
        for octet in ["170", "171"] {
            let answer = try rig.ask(query("\(octet).0.0.192.In-Addr.arpa", .ptr)).answer
            // The name ends with that of the question.
            let target = try #require(answer.data(.ptr).first)
            #expect(target.dropLast(2) == wire("ipv4only").dropLast() && target[target.count - 2] == 0xC0)
            #expect(answer.bytes.dropFirst(Int(target[target.count - 1])).starts(with: wire("arpa")))
            #expect(try rig.ask(query("\(octet).0.0.192.in-addr.arpa")).answer.records.map(\.type) == [.soa])
            #expect(try rig.ask(query("x.\(octet).0.0.192.in-addr.arpa", .ptr)).answer.code == .nameError)
        }
        #expect(rig.begun.isEmpty)
        _ = try rig.ask(query("172.0.0.192.in-addr.arpa", .ptr)).client
        var plain = try Rig()
        _ = try plain.ask(query("170.0.0.192.in-addr.arpa", .ptr)).client
    }
}
