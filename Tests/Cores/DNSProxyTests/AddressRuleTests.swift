import DNSMessage
import DNSProxy
import IPPacket
import TestSupport
import Testing

@Suite("Rules about addresses")
struct AddressRuleTests {
    @Test(
        "H3: rules about addresses read as they are written",
        arguments: [
            ("198.51.100.7", "198.51.100.7/32", NameRule.Action.block), ("198.51.100.0/24", "198.51.100.0/24", .block),
            ("||198.51.100.7^", "198.51.100.7/32", .block), ("||2001:db8::/32^", "2001:db8::/32", .block),
            ("@@2001:db8::1", "2001:db8::1/128", .allow), ("@@||198.51.100.7/31^", "198.51.100.6/31", .allow),
        ])
    func reading(text: String, prefix: String, action: NameRule.Action) throws {
        let rule = try #require(AddressRule(parsing: text))
        #expect(rule.prefix == (try IPPrefix(parsing: prefix)) && rule.action == action)
    }

    @Test(
        "H3: what is no address is no rule about one",
        arguments: [
            "", "@@", "||^", "||198.51.100.7", "198.51.100.7^", "0.0.0.0/0", "::/0", "||ads.example^", "1.2.3",
            "1.2.3.4/33",
        ])
    func others(text: String) {
        #expect(AddressRule(parsing: text) == nil)
    }

    private func rig(_ rules: String..., rebinding: Bool = true) throws -> Rig {
        try Rig(
            DNSProxyConfiguration.plain.with {
                $0.addressRules = rules.compactMap { AddressRule(parsing: $0) }
                $0.blocksRebinding = rebinding
            })
    }

    private let hint: [UInt8] = [0, 1, 0, 0, 4, 0, 4, 198, 51, 100, 9]

    @Test("H3: an answer with a blocked address is blocked, be it in A, AAAA or a hint, in whatever section")
    func blocked() throws {
        var rig = try rig("198.51.100.0/24", "2001:db8:bad::/48", "@@198.51.100.77")
        let bad = record(.a, address(198, 51, 100, 7))
        let zero = try rig.resolve(query("a.example", opt: opt()), [record(.a, address(192, 0, 2, 1)), bad])
        for answer in [zero, try rig.ask(query("a.example", opt: opt())).answer] {
            #expect(answer.data(.a) == [[0, 0, 0, 0]] && answer.error == .blocked)
        }
        #expect(try rig.resolve(query("h.example", .https, opt: opt()), [record(.https, hint)]).error == .blocked)
        let six: [UInt8] = [0x20, 1, 0xD, 0xB8, 0xB, 0xAD] + [UInt8](repeating: 0, count: 9) + [1]
        #expect(try rig.resolve(query("b.example", .aaaa, opt: opt()), [record(.aaaa, six)]).error == .blocked)
        let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 198, 51, 100, 7]
        #expect(try rig.resolve(query("m.example", .aaaa, opt: opt()), [record(.aaaa, mapped)]).error == .blocked)
        let mail = record(.mx, [0, 10] + wire("mail.example"))
        let extra = try rig.resolve(
            query("x.example", .mx, opt: opt()), [mail],
            additional: [record(.a, owner: "mail.example", address(198, 51, 100, 7))])
        #expect(extra.error == .blocked)
        let good = try rig.resolve(query("c.example", opt: opt()), [record(.a, address(198, 51, 100, 77))])
        #expect(good.data(.a).count == 1 && good.error == nil)
        #expect(try rig.resolve(query("d.example"), [record(.a, address(198, 51, 101, 7))]).data(.a).count == 1)
    }

    @Test("H3, G8: an address that is let through may be of the inside, others may not")
    func allowed() throws {
        var rig = try rig("@@192.168.7.0/24")
        #expect(try rig.resolve(query("nas.example"), [record(.a, address(192, 168, 7, 1))]).data(.a).count == 1)
        let other = try rig.resolve(
            query("x.example", opt: opt()),
            [record(.a, address(192, 168, 7, 1)), record(.a, address(192, 168, 8, 1))])
        #expect(other.data(.a).isEmpty && other.error == .blocked)
    }

    @Test("G8: a hint at an address of the inside is held back")
    func rebindingHint() throws {
        var rig = try rig()
        let inside: [UInt8] = [0, 1, 0, 0, 4, 0, 4, 10, 0, 0, 1]
        let answer = try rig.resolve(query("h.example", .https, opt: opt()), [record(.https, inside)])
        #expect(answer.data(.https).isEmpty && answer.error == .blocked)
    }

    @Test("H3: a name that a rule lets through may lead anywhere, and a reload acts on what is kept")
    func names() throws {
        let rule = try #require(AddressRule(parsing: "198.51.100.0/24"))
        let configuration = try DNSProxyConfiguration.plain.with(rules: "@@||good.example^")
        var rig = try Rig(configuration.with { $0.addressRules = [rule] })
        let bad = record(.a, address(198, 51, 100, 7))
        #expect(try rig.resolve(query("x.good.example"), [bad]).data(.a) == [[198, 51, 100, 7]])
        #expect(try rig.resolve(query("bad.example"), [bad]).data(.a) == [[0, 0, 0, 0]])
        try rig.provider.reload(configuration, at: rig.now)
        #expect(try rig.ask(query("bad.example")).answer.data(.a) == [[198, 51, 100, 7]])
        try rig.provider.reload(configuration.with { $0.addressRules = [rule] }, at: rig.now)
        #expect(try rig.ask(query("bad.example")).answer.data(.a) == [[0, 0, 0, 0]])
        #expect(rig.begun.count == 2)
    }

    @Test("H3, G9: an address that is made is held to the rules about the IPv4 address in it")
    func translated() throws {
        let rule = try #require(AddressRule(parsing: "198.51.100.0/24"))
        let configuration = try DNSProxyConfiguration.dns64()
        var rig = try Rig(configuration)
        let asked = query("h2.example.com", .aaaa)
        let absent = [soa("example.com", ttl: 300, minimum: 300)]
        #expect(try rig.synthesize(asked, absent, [record(.a, address(198, 51, 100, 7))]).data(.aaaa).count == 1)
        try rig.provider.reload(configuration.with { $0.addressRules = [rule] }, at: rig.now)
        #expect(try rig.ask(asked).answer.data(.aaaa) == [[UInt8](repeating: 0, count: 16)])
    }
}
