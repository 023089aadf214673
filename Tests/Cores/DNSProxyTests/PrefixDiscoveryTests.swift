import DNSMessage
import DNSProxy
import IPPacket
import Provider
import TestSupport
import Testing

@Suite("The network's own prefix")
struct PrefixDiscoveryTests {
    private let automatic = DNSProxyConfiguration.plain.with { $0.dns64 = .automatic }
    private let absent = [soa("example.com", ttl: 300, minimum: 300)]

    /// Answers the question for the prefix, which has to be the latest one.
    private func tell(_ rig: inout Rig, _ addresses: [String], ttl: UInt32 = 3600) throws {
        let sent = try #require(rig.open.last?.query)
        #expect(Array(sent[12...].prefix(19)) == wire("ipv4only.arpa") + [0, 28, 0, 1])
        // CD would keep a server from making addresses (RFC 7050 §3).
        #expect(sent[3] & 0x10 == 0)
        let records = try addresses.map { record(.aaaa, ttl: ttl, try IPAddress(parsing: $0).octetsOfTest) }
        rig.deliver(reply(to: sent, records, authority: records.isEmpty ? [soa("arpa", ttl: ttl, minimum: ttl)] : []))
    }

    private func prefix(_ rig: borrowing Rig) -> String? {
        rig.provider.status(at: rig.now).translationPrefix?.description
    }

    @Test(
        "G9: the prefix is found for each length, from both addresses or one",
        arguments: [
            ("2001:db8::/32", "2001:db8:c000:aa::", "2001:db8:c000:ab::"),
            ("2001:db8:100::/40", "2001:db8:1c0:0:aa::", "2001:db8:1c0:0:ab::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:0:aa00::", "2001:db8:122:c000:0:ab00::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:aa::", "2001:db8:122:3c0:0:ab::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:0:aa00::", "2001:db8:122:344:c0:0:ab00::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::c000:aa", "2001:db8:122:344::c000:ab"),
            ("64:ff9b::/96", "64:ff9b::c000:aa", "64:ff9b::c000:ab"),
        ])
    func lengths(expected: String, first: String, second: String) throws {
        for addresses in [[first, second], [second, first], [first], [second]] {
            var rig = try Rig(automatic)
            try tell(&rig, addresses)
            #expect(prefix(rig) == expected)
        }
    }

    @Test("G9: what fits both addresses wins over what fits one by chance")
    func ambiguous() throws {
        var rig = try Rig(automatic)
        // The last four octets look like the address as well.
        try tell(&rig, ["2001:db8:c000:aa::c000:aa", "2001:db8:c000:ab::c000:aa"])
        #expect(prefix(rig) == "2001:db8::/32")
    }

    @Test("G9: with the prefix addresses are made, without none are; what was kept before is forgotten")
    func use() throws {
        var rig = try Rig(automatic)
        let asked = query("h2.example.com", .aaaa)
        #expect(rig.open.count == 1)
        try rig.resolve(asked, authority: absent)
        try tell(&rig, ["64:ff9b::c000:aa"])
        let answer = try rig.synthesize(asked, absent, [record(.a, address(192, 0, 2, 1))])
        #expect(answer.data(.aaaa) == [try IPAddress(parsing: "64:ff9b::c000:201").octetsOfTest])
        #expect(try rig.ask(query("ipv4only.arpa", .aaaa)).answer.data(.aaaa).count == 2)
    }

    @Test("G9: the prefix is asked for again shortly before its time is over, and stays when nobody can answer")
    func renewal() throws {
        var rig = try Rig(automatic)
        try tell(&rig, ["64:ff9b::c000:aa"], ttl: 600)
        rig.pass(.milliseconds(589_999))
        #expect(rig.open.isEmpty)
        rig.pass(.milliseconds(1))
        rig.fail(.unreachable)
        #expect(prefix(rig) == "64:ff9b::/96" && rig.begun.count == 2)
        rig.pass(.seconds(30))
        try tell(&rig, ["2001:db8:122:344::c000:aa"])
        #expect(prefix(rig) == "2001:db8:122:344::/96")
    }

    @Test("G9: a network without a prefix is asked again after a while, and a silent one too")
    func absence() throws {
        var rig = try Rig(automatic)
        try tell(&rig, [])
        #expect(prefix(rig) == nil)
        rig.pass(.milliseconds(299_999))
        #expect(rig.open.isEmpty)
        rig.pass(.milliseconds(1))
        rig.pass(.seconds(5))
        #expect(rig.open.isEmpty)
        rig.pass(.seconds(30))
        // Addresses of which none shows the known ones have no prefix.
        try tell(&rig, ["2001:db8::1", "::ffff:192.0.0.170"])
        #expect(prefix(rig) == nil && rig.provider.nextDeadline == rig.now + .seconds(300))
    }

    @Test("G9: another path has another prefix: the old one is forgotten at once, with what was made with it")
    func paths() throws {
        var rig = try Rig(automatic)
        rig.provider.pathChanged(NetworkPath(interfaceIndex: 2), at: rig.now)
        try tell(&rig, ["64:ff9b::c000:aa"])
        let asked = query("h2.example.com", .aaaa)
        try rig.synthesize(asked, absent, [record(.a, address(192, 0, 2, 1))])
        let (client, sent) = try rig.forward(query("x.example.com", .aaaa))
        rig.deliver(reply(to: sent, authority: absent))
        rig.provider.pathChanged(NetworkPath(interfaceIndex: 3), at: rig.now)
        rig.carryOut()
        #expect(prefix(rig) == nil && rig.open.map(\.query.questionType) == [.aaaa, .aaaa])
        // What was under way begins anew: the network has IPv6 addresses of its own, or none.
        rig.deliver(reply(to: rig.open[0].query, authority: absent), at: 0)
        #expect(try rig.answer(of: client).records.map(\.type) == [.soa])
        try tell(&rig, [])
        #expect(try rig.resolve(asked, authority: absent).data(.aaaa).isEmpty)
    }

    @Test("G9: a client's own question for ipv4only.arpa is one with the proxy's")
    func merged() throws {
        var rig = try Rig(automatic)
        let client = try rig.ask(query("ipv4only.arpa", .aaaa)).client
        #expect(rig.begun.count == 1)
        try tell(&rig, ["64:ff9b::c000:aa"])
        #expect(try rig.answer(of: client).data(.aaaa).count == 1 && prefix(rig) == "64:ff9b::/96")
    }

    @Test("G9: a reload to another prefix, or to none, counts at once; a stop asks for nothing any more")
    func reload() throws {
        var rig = try Rig(automatic)
        try rig.provider.reload(try .dns64("2001:db8::/32"), at: rig.now)
        rig.carryOut()
        #expect(prefix(rig) == "2001:db8::/32")
        try tell(&rig, ["64:ff9b::c000:aa"])
        #expect(prefix(rig) == "2001:db8::/32")
        try rig.provider.reload(automatic, at: rig.now)
        rig.carryOut()
        #expect(prefix(rig) == nil && rig.open.count == 1)
        rig.provider.stop(.userInitiated, at: rig.now)
        rig.carryOut()
        #expect(rig.open.isEmpty && rig.provider.nextDeadline == nil)
    }

    @Test("G9: while the machine sleeps nothing is asked; waking, the prefix is asked for anew")
    func sleep() throws {
        var rig = try Rig(automatic)
        try tell(&rig, ["64:ff9b::c000:aa"])
        rig.provider.sleep()
        #expect(rig.provider.nextDeadline == nil)
        rig.pass(.seconds(10_000))
        rig.provider.wake(at: rig.now)
        rig.carryOut()
        try tell(&rig, ["64:ff9b::c000:aa"])
        #expect(prefix(rig) == "64:ff9b::/96")
    }
}
