import DNSMessage
import DNSProxy
import IPPacket
import Provider
import TestSupport
import Testing

@Suite("IPv6 addresses for names that have none")
struct DNS64Tests {
    private let asked = query("h2.example.com", .aaaa, opt: opt())
    private let absent = [soa("example.com", ttl: 300, minimum: 300)]
    private let found = record(.a, ttl: 200, address(192, 0, 2, 1))

    @Test(
        "G9: IPv4 addresses are put behind prefixes of all lengths, as RFC 6052 §2.4 shows",
        arguments: [
            ("2001:db8::/32", "2001:db8:c000:221::"), ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"), ("64:ff9b::/96", "64:ff9b::192.0.2.33"),
        ])
    func lengths(prefix: String, expected: String) throws {
        var rig = try Rig(.dns64(prefix))
        let answer = try rig.synthesize(asked, absent, [record(.a, address(192, 0, 2, 33))])
        #expect(answer.data(.aaaa) == [try IPAddress(parsing: expected).octetsOfTest])
        #expect(answer.data(.a).isEmpty && answer.code == .noError && answer.hasOPT)
    }

    @Test("G9: what is made is kept, counts down, and is for the question's own letters")
    func kept() throws {
        var rig = try Rig(.dns64())
        try rig.synthesize(asked, absent, [found])
        rig.pass(.seconds(20))
        let answer = try rig.ask(query("H2.Example.com", .aaaa)).answer
        #expect(answer.records.map(\.owner) == ["H2.Example.com."] && answer.ttls(.aaaa) == [180])
        #expect(rig.begun.count == 2)
    }

    @Test("G9: IPv4 addresses that are kept are not asked for, and are as old as they are", arguments: [false, true])
    func keptAddresses(isInside: Bool) throws {
        var rig = try Rig(.dns64())
        let data = isInside ? address(10, 0, 0, 1) : address(192, 0, 2, 1)
        try rig.resolve(query("h2.example.com"), [record(.a, ttl: 200, data)])
        rig.pass(.seconds(50))
        let answer = try rig.resolve(asked, authority: absent)
        #expect(rig.begun.count == 2 && rig.open.isEmpty && rig.provider.status(at: rig.now).lookups == 0)
        #expect(answer.ttls(.aaaa) == (isInside ? [] : [150]) && answer.error == (isInside ? .blocked : nil))
        #expect(try rig.ask(query("h2.example.com")).answer.data(.a) == (isInside ? [] : [data]))
    }

    @Test(
        "G9: a prefix that is none does not start",
        arguments: ["2001:db8::/33", "2001:db8::ff00:0:0:0/96", "10.0.0.0/8"])
    func impossiblePrefix(text: String) throws {
        #expect(throws: DNSProxyError.impossiblePrefix(try IPPrefix(parsing: text))) { _ = try Rig(.dns64(text)) }
    }

    @Test("G9: an IPv6 address of its own is all that a name needs; NXDOMAIN is NXDOMAIN")
    func real() throws {
        var rig = try Rig(.dns64())
        let own = try IPAddress(parsing: "2001:db8::1").octetsOfTest
        #expect(try rig.resolve(asked, flags: 0x8180, [record(.aaaa, own)]).data(.aaaa) == [own])
        let nothing = try rig.resolve(query("x.example.com", .aaaa), flags: 0x8183, authority: absent)
        #expect(nothing.code == .nameError && rig.begun.count == 2)
    }

    @Test("G9: IPv4 addresses in the form of ::ffff:0:0/96 do not count, and are left out beside others")
    func excluded() throws {
        let mapped = record(.aaaa, try IPAddress(parsing: "::ffff:192.0.2.9").octetsOfTest)
        let own = try IPAddress(parsing: "2001:db8::1").octetsOfTest
        var rig = try Rig(.dns64())
        let (client, sent) = try rig.forward(asked)
        rig.deliver(reply(to: sent, [mapped]))
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        let made = try rig.answer(of: client)
        #expect(made.data(.aaaa) == [try IPAddress(parsing: "64:ff9b::192.0.2.1").octetsOfTest])
        let mixed = try rig.resolve(query("x.example.com", .aaaa), [mapped, record(.aaaa, own)])
        #expect(mixed.data(.aaaa) == [own] && rig.begun.count == 3)
    }

    @Test("G9: aliases stay as they are, and the addresses belong to the last of them")
    func aliases() throws {
        let alias = record(.cname, ttl: 900, wire("t.example.net"))
        var rig = try Rig(.dns64())
        let answer = try rig.synthesize(
            asked, [soa("example.net", ttl: 300, minimum: 300)], aliases: [alias],
            [alias, record(.a, owner: "t.example.net", ttl: 50, address(192, 0, 2, 1))])
        #expect(answer.records.filter { $0.section == .answer }.map(\.type) == [.cname, .aaaa])
        #expect(answer.records.map(\.owner).prefix(2) == ["h2.example.com.", "t.example.net."])
        #expect(answer.ttls(.cname) == [900] && answer.ttls(.aaaa) == [50])
    }

    @Test(
        "G9: what is made lives no longer than the IPv4 address and the absence, which is 600 seconds when nothing is said",
        arguments: [(3000, 300, 300), (100, 300, 100), (3000, 0, 600), (500, 0, 500)] as [(UInt32, UInt32, UInt32)])
    func timeToLive(ttl: UInt32, soaTTL: UInt32, given: UInt32) throws {
        var rig = try Rig(.dns64())
        let authority = soaTTL == 0 ? [] : [soa("example.com", ttl: soaTTL, minimum: 86_400)]
        let answer = try rig.synthesize(asked, authority, [record(.a, ttl: ttl, address(192, 0, 2, 1))])
        #expect(answer.ttls(.aaaa) == [given])
    }

    @Test("G9: a server's failure is no absence that counts: IPv4 is asked for", arguments: [2, 4, 5] as [UInt16])
    func failures(code: UInt16) throws {
        var rig = try Rig(.dns64())
        let (client, sent) = try rig.forward(asked)
        rig.deliver(reply(to: sent, flags: 0x8180 | code, additional: [opt()]))
        let second = try #require(rig.open.last?.query)
        #expect(second.questionType == .a)
        rig.deliver(reply(to: second, [found]))
        #expect(try rig.answer(of: client).ttls(.aaaa) == [200])
    }

    @Test("G9: a server that is silent about IPv6 leaves half of the time for IPv4, and all ends at the deadline")
    func silence() throws {
        var rig = try Rig(.dns64())
        let client = try rig.ask(asked).client
        rig.pass(.milliseconds(2499))
        #expect(rig.open.allSatisfy { $0.query.questionType == .aaaa })
        rig.pass(.milliseconds(1))
        #expect(rig.open.map(\.query.questionType) == [.a])
        rig.pass(.milliseconds(2499))
        #expect(rig.answers.isEmpty)
        rig.pass(.milliseconds(1))
        #expect(try rig.answer(of: client).code == .serverFailure)
        #expect(rig.open.isEmpty && rig.provider.nextDeadline == nil)
    }

    @Test("G9: without IPv4 addresses the name has none; when they cannot be had that is a failure")
    func nothing() throws {
        var rig = try Rig(.dns64())
        let neither = try rig.synthesize(asked, absent, [], authority: [soa("example.com", ttl: 7, minimum: 7)])
        #expect(neither.code == .noError && neither.records.map(\.type) == [.soa] && neither.ttls(.soa) == [300])
        let (client, sent) = try rig.forward(query("x.example.com", .aaaa))
        rig.deliver(reply(to: sent, authority: absent))
        rig.deliver(reply(to: try #require(rig.open.last?.query), flags: 0x8182))
        #expect(try rig.answer(of: client).code == .serverFailure)
        // Neither could be asked for at first: that there are none of IPv4 is all that is known.
        let (other, first) = try rig.forward(query("y.example.com", .aaaa))
        rig.deliver(reply(to: first, flags: 0x8182))
        rig.deliver(reply(to: try #require(rig.open.last?.query), authority: absent))
        let last = try rig.answer(of: other)
        #expect(last.code == .noError && last.records.map(\.type) == [.soa])
    }

    @Test("G9: who checks signatures itself gets what there is; DO or CD alone lets addresses be made")
    func signatures() throws {
        for (isSecure, isUnchecked) in [(true, true), (true, false), (false, true)] {
            var rig = try Rig(.dns64(trusted: true))
            let flags: UInt16 = isUnchecked ? 0x0110 : 0x0100
            let asked = query("h2.example.com", .aaaa, flags: flags, opt: opt(dnssecOK: isSecure))
            let (client, sent) = try rig.forward(asked)
            rig.deliver(reply(to: sent, flags: 0x81A0, authority: absent))
            guard isSecure && isUnchecked else {
                let fields = bytes(1 as UInt16) + [UInt8](repeating: 0, count: 16)
                let signature = record(.rrsig, fields + wire("example.com") + [1])
                let second = try #require(rig.open.last?.query)
                rig.deliver(reply(to: second, flags: 0x81A0, [found, signature]))
                let answer = try rig.answer(of: client)
                #expect(answer.records.map(\.type) == [.aaaa] && !answer.flags.contains(.authenticData))
                continue
            }
            #expect(try rig.answer(of: client).records.map(\.type) == [.soa])
        }
        var bogus = try Rig(.dns64())
        let (client, sent) = try bogus.forward(asked)
        bogus.deliver(reply(to: sent, flags: 0x8182, additional: [opt(option(15, [0, 6]))]))
        #expect(try bogus.answer(of: client).error == .dnssecBogus && bogus.begun.count == 1)
    }

    @Test("G9: nothing is made for what rules block, by its name or by what it leads to")
    func rules() throws {
        var rig = try Rig(try DNSProxyConfiguration.dns64().with(rules: "||ads.example^"))
        #expect(try rig.ask(query("x.ads.example", .aaaa)).answer.data(.aaaa) == [[UInt8](repeating: 0, count: 16)])
        let alias = record(.cname, wire("x.ads.example"))
        let direct = try rig.resolve(query("a.example", .aaaa), [alias], authority: absent)
        #expect(direct.data(.aaaa) == [[UInt8](repeating: 0, count: 16)] && rig.begun.count == 1)
        let (client, sent) = try rig.forward(query("b.example", .aaaa))
        rig.deliver(reply(to: sent, authority: absent))
        let address = record(.a, owner: "x.ads.example", address(192, 0, 2, 1))
        rig.deliver(reply(to: try #require(rig.open.last?.query), [alias, address]))
        #expect(try rig.answer(of: client).data(.aaaa) == [[UInt8](repeating: 0, count: 16)])
    }

    @Test(
        "G8, G9: IPv4 addresses of the inside are held back, also once rules are others",
        arguments: ["64:ff9b::/96", "2001:db8:122:344::/64"])
    func rebinding(prefix: String) throws {
        let inside = record(.a, address(192, 168, 1, 1))
        let configuration = try DNSProxyConfiguration.dns64(prefix)
        var rig = try Rig(configuration)
        let answer = try rig.synthesize(asked, absent, [inside])
        #expect(answer.records.map(\.type) == [.soa] && answer.error == .blocked)
        try rig.provider.reload(try configuration.with(rules: "||ads.example^"), at: rig.now)
        #expect(try rig.ask(asked).answer.data(.aaaa).isEmpty)
        // Where they may be given out, the well-known prefix is still not for them (RFC 6052 §3.1).
        var open = try Rig(configuration.with { $0.blocksRebinding = false })
        let allowed = try open.synthesize(asked, absent, [inside])
        #expect(allowed.data(.aaaa).count == (prefix.hasPrefix("64") ? 0 : 1) && allowed.error == nil)
    }

    @Test("G8, G9: a prefix of the inside is no reason to hold back what is made with it")
    func privatePrefix() throws {
        let configuration = try DNSProxyConfiguration.dns64("fd64::/96")
        var rig = try Rig(configuration)
        #expect(try rig.synthesize(asked, absent, [found]).data(.aaaa).count == 1)
        try rig.provider.reload(try configuration.with(rules: "||ads.example^"), at: rig.now)
        #expect(try rig.ask(asked).answer.data(.aaaa) == [try IPAddress(parsing: "fd64::192.0.2.1").octetsOfTest])
        let own = try rig.resolve(query("x.example.com", .aaaa), [record(.aaaa, try octets("fd65::1"))])
        #expect(own.data(.aaaa).isEmpty)
    }

    private func octets(_ text: String) throws -> [UInt8] { try IPAddress(parsing: text).octetsOfTest }

    @Test("G9: the name of an address behind the prefix is an alias of the IPv4 address's")
    func reverse() throws {
        var rig = try Rig(.dns64("2001:db8:122:344::/64"))
        let name = try reverseName("2001:db8:122:344:c6:1201:200::")
        let client = try rig.ask(query(name, .ptr)).client
        let sent = try #require(rig.open.last?.query)
        #expect(Array(sent[12...].prefix(wire("2.1.18.198.in-addr.arpa").count)) == wire("2.1.18.198.in-addr.arpa"))
        rig.deliver(reply(to: sent, [record(.ptr, ttl: 100, wire("h2.example.com"))]))
        let answer = try rig.answer(of: client)
        #expect(answer.records.map(\.type) == [.cname, .ptr] && answer.ttls(.cname) == [100])
        #expect(answer.records.map(\.owner) == [name + ".", "2.1.18.198.in-addr.arpa."])
        #expect(try rig.ask(query(name, .ptr)).answer.records == answer.records)
        // Nobody outside knows the names of the inside, and other names are asked about as they are.
        let inside = try rig.ask(query(try reverseName("2001:db8:122:344:a:0:100::"), .ptr)).answer
        #expect(inside.code == .nameError && rig.begun.count == 1)
        var other = try Rig(.dns64())
        let foreign = wire(try reverseName("2606:4700::1111"))
        let sentAsIs = try other.forward(query(try reverseName("2606:4700::1111"), .ptr)).sent
        #expect(Array(sentAsIs[12...].prefix(foreign.count)) == foreign)
    }

    @Test("G9: ipv4only.arpa is answered without asking anybody, with the prefix (RFC 8880)")
    func ipv4Only() throws {
        var rig = try Rig(.dns64("2001:db8:122:344::/96"))
        let name = "ipv4only.arpa"
        #expect(try rig.ask(query(name)).answer.data(.a) == [[192, 0, 0, 170], [192, 0, 0, 171]])
        let made = try ["2001:db8:122:344::c000:aa", "2001:db8:122:344::c000:ab"].map {
            try IPAddress(parsing: $0).octetsOfTest
        }
        #expect(try rig.ask(query("IPv4only.ARPA", .aaaa)).answer.data(.aaaa) == made)
        #expect(try rig.ask(query(name, .txt)).answer.records.map(\.type) == [.soa])
        #expect(try rig.ask(query("x." + name, .aaaa)).answer.code == .nameError)
        #expect(rig.begun.isEmpty)
        var off = try Rig()
        _ = try off.ask(query(name, .aaaa)).client
    }

    @Test("G9: other types, and all when it is off, are asked about as they are")
    func others() throws {
        var rig = try Rig(.dns64())
        for type in [RecordType.a, .https, .mx] {
            let answer = try rig.resolve(query("h2.example.com", type), authority: absent)
            #expect(answer.records.map(\.type) == [.soa])
        }
        var off = try Rig()
        #expect(try off.resolve(asked, authority: absent).records.map(\.type) == [.soa])
    }

    @Test("G9, F8: what was made is given when it is too old and no server answers")
    func stale() throws {
        var rig = try Rig(.dns64())
        try rig.synthesize(asked, absent, [found])
        rig.pass(.seconds(200))
        let client = try rig.ask(asked).client
        rig.fail(.unreachable)
        rig.fail(.unreachable)
        let answer = try rig.answer(of: client)
        #expect(answer.error == .staleAnswer && answer.data(.aaaa).count == 1)
    }

    /// The name of an IPv6 address in ip6.arpa.
    private func reverseName(_ text: String) throws -> String {
        let octets = try IPAddress(parsing: text).octetsOfTest
        let digits = octets.reversed().flatMap { [$0 & 0xF, $0 >> 4] }
        return digits.map { String($0, radix: 16) }.joined(separator: ".") + ".ip6.arpa"
    }
}

extension DNSProxyConfiguration {
    /// One server by UDP, and IPv6 addresses that are made with a prefix.
    static func dns64(_ prefix: String = "64:ff9b::/96", trusted: Bool = false) throws -> DNSProxyConfiguration {
        let prefix = try IPPrefix(parsing: prefix)
        return servers(.udp, trusted: trusted).with { $0.dns64 = .prefix(prefix) }
    }
}

extension [UInt8] {
    /// QTYPE of a message.
    var questionType: RecordType {
        var end = 12
        while self[end] != 0 { end += Int(self[end]) + 1 }
        return RecordType(rawValue: number(at: end + 1))
    }
}

extension Rig {
    /// Asks for IPv6 addresses, lets a server say that there are none, and then which of IPv4 there are.
    @discardableResult
    mutating func synthesize(
        _ query: [UInt8], _ absent: [[UInt8]], aliases: [[UInt8]] = [], _ found: [[UInt8]], authority: [[UInt8]] = []
    ) throws -> Answer {
        let (client, sent) = try forward(query)
        #expect(sent.questionType == .aaaa)
        deliver(reply(to: sent, aliases, authority: absent))
        let second = try #require(open.last?.query)
        #expect(second.questionType == .a)
        deliver(reply(to: second, found, authority: authority))
        return try answer(of: client)
    }
}
