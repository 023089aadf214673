import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("What is taken out of answers")
struct RewritingTests {
    private let asked = query("www.example.com", .https, opt: opt())

    /// The data of an HTTPS record with the root as its target.
    private func service(_ parameters: (key: UInt16, value: [UInt8])..., priority: UInt16 = 1) -> [UInt8] {
        bytes(priority) + [0] + parameters.flatMap { bytes($0.key) + bytes(UInt16($0.value.count)) + $0.value }
    }

    private let h2h3: [UInt8] = [2, 0x68, 0x32, 2, 0x68, 0x33]
    private let h3: [UInt8] = [2, 0x68, 0x33]
    private let v4: [UInt8] = [192, 0, 2, 1]
    private let v6: [UInt8] = [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]

    /// A signature of a set.
    private func signature(_ type: RecordType, owner: String = "") -> [UInt8] {
        record(
            .rrsig, owner: owner, bytes(type.rawValue) + [UInt8](repeating: 1, count: 16) + wire("example.com") + [9])
    }

    private func rig(trusted: Bool = false, _ change: (inout AnswerRewriting) -> Void) throws -> Rig {
        try Rig(DNSProxyConfiguration.servers(.udp, trusted: trusted).with { change(&$0.rewriting) })
    }

    @Test("H4: ech goes, and mandatory loses it; the rest stays to the octet, also from the cache")
    func ech() throws {
        var rig = try rig { $0.removesECH = true }
        let full = service((0, [0, 1, 0, 5]), (1, h2h3), (4, v4), (5, [1, 2, 3]), (6, v6), (65_280, [7]))
        let left = service((0, [0, 1]), (1, h2h3), (4, v4), (6, v6), (65_280, [7]))
        let plain = service((1, h2h3), priority: 2)
        let alias = bytes(0 as UInt16) + wire("other.example") + bytes(5 as UInt16) + bytes(1 as UInt16) + [1]
        let first = try rig.resolve(
            asked, [record(.https, full), record(.https, plain), record(.https, owner: "a.example", alias)],
            additional: [record(.a, owner: "svc.example.com", v4)])
        for answer in [first, try rig.ask(asked).answer, try rig.ask(asked).answer] {
            #expect(answer.data(.https) == [left, plain, alias] && answer.error == .forgedAnswer)
            #expect(answer.records.filter { $0.section == .additional }.map(\.data) == [v4])
            #expect(!answer.flags.contains(.authoritativeAnswer) && !answer.flags.contains(.reserved))
        }
        // Who sent no OPT record is told nothing, and what has no ech is not changed.
        #expect(!(try rig.ask(query("www.example.com", .https)).answer.hasOPT))
        let other = try rig.resolve(query("x.example", .https, opt: opt()), [record(.https, plain)])
        #expect(other.data(.https) == [plain] && other.error == nil)
        #expect(rig.begun.count == 2)
    }

    @Test("H4: nothing is taken out unless the configuration says so")
    func nothing() throws {
        var rig = try Rig()
        let full = service((1, h2h3), (5, [1, 2, 3]), (6, v6))
        let answer = try rig.resolve(asked, [record(.https, full)])
        #expect(answer.data(.https) == [full] && answer.error == nil)
    }

    @Test(
        "H4: a record that no client could use without its protocols goes; without any the answer is that there is none"
    )
    func protocols() throws {
        var rig = try rig { $0.removedProtocols = ["h3"] }
        let only = service((1, h3), (2, []))
        let some = try rig.resolve(asked, [record(.https, only), record(.https, service((1, h2h3), priority: 2))])
        #expect(some.data(.https) == [service((1, [2, 0x68, 0x32]), priority: 2)] && some.error == .forgedAnswer)
        let alias = record(.cname, ttl: 900, wire("to.example"))
        let name = query("alias.example", .https, opt: opt())
        let none = try rig.resolve(name, [alias, record(.https, owner: "to.example", ttl: 77, only)])
        for answer in [none, try rig.ask(name).answer, try rig.ask(name).answer] {
            #expect(answer.code == .noError && answer.error == .filtered)
            #expect(
                answer.records.map(\.type) == [.cname, .soa] && answer.records.map(\.section) == [.answer, .authority])
            #expect(answer.records.map(\.owner) == ["alias.example.", "to.example."] && answer.ttls(.soa) == [77])
        }
        rig.pass(.seconds(77))
        #expect(try rig.forward(name).sent.questionType == .https)
    }

    @Test("B17: what is changed loses its signatures, and AD; other sets keep theirs")
    func signatures() throws {
        var rig = try rig(trusted: true) { $0.removesECH = true }
        let asked = query("www.example.com", .https, opt: opt(dnssecOK: true))
        let alias = record(.cname, wire("to.example.com"))
        let other = record(.https, owner: "other.example.com", service((1, h2h3)))
        let answer = try rig.resolve(
            asked, flags: 0x81A0,
            [
                alias, signature(.cname), record(.https, owner: "to.example.com", service((5, [1, 2]))),
                signature(.https, owner: "TO.example.com"),
            ],
            additional: [other, signature(.https, owner: "other.example.com")])
        for answer in [answer, try rig.ask(asked).answer, try rig.ask(asked).answer] {
            #expect(answer.records.map(\.type) == [.cname, .rrsig, .https, .https, .rrsig])
            #expect(answer.records.map(\.owner)[4] == "other.example.com.")
            #expect(!answer.flags.contains(.authenticData) && answer.error == .forgedAnswer)
        }
        // What is not changed is authentic.
        let name = query("plain.example.com", .https, opt: opt(dnssecOK: true))
        let plain = try rig.resolve(
            name, flags: 0x81A0, [record(.https, service((1, h2h3))), signature(.https)])
        #expect(plain.flags.contains(.authenticData) && plain.records.map(\.type) == [.https, .rrsig])
    }

    @Test("B17: of more changed sets than anybody has, no signature is left")
    func manySets() throws {
        var rig = try rig { $0.removesECH = true }
        let sets = (0..<12).flatMap { number -> [[UInt8]] in
            let owner = "s\(number).example.com"
            return [record(.https, owner: owner, service((5, [1]))), signature(.https, owner: owner)]
        }
        let asked = query("www.example.com", .https, opt: opt(dnssecOK: true))
        let answer = try rig.resolve(asked, by: .tcp, [record(.https, service((5, [1]))), signature(.https)] + sets)
        #expect(answer.records.count == 13 && answer.records.allSatisfy { $0.type == .https })
    }

    @Test("H3: without IPv6 there are no IPv6 addresses, nobody is asked for them, and no record hints at them")
    func noIPv6() throws {
        var rig = try rig { $0.blocksIPv6 = true }
        let answer = try rig.ask(query("www.example.com", .aaaa, opt: opt())).answer
        #expect(answer.code == .noError && answer.error == .filtered && answer.records.map(\.type) == [.soa])
        #expect(rig.begun.isEmpty)
        // The machine's own addresses are not of a server.
        #expect(try rig.ask(query("localhost", .aaaa)).answer.data(.aaaa).count == 1)
        let full = service((0, [0, 4, 0, 6]), (4, v4), (6, v6))
        let https = try rig.resolve(
            asked, [record(.https, full)],
            additional: [record(.aaaa, owner: "svc.example.com", v6), record(.a, owner: "svc.example.com", v4)])
        #expect(https.data(.https) == [service((0, [0, 4]), (4, v4))])
        #expect(https.records.map(\.type) == [.https, .a])
        let all = try rig.resolve(
            query("www.example.com", .any, opt: opt()), by: .tcp, [record(.a, v4), record(.aaaa, v6)])
        #expect(all.records.map(\.type) == [.a] && all.error == .forgedAnswer)
        let only = try rig.resolve(query("six.example.com", .any, opt: opt()), by: .tcp, [record(.aaaa, v6)])
        #expect(only.records.map(\.type) == [.soa] && only.error == .filtered)
    }

    @Test("H4: hints go when they are not wanted, before anybody looks where they lead")
    func hints() throws {
        var rig = try rig { $0.removesHints = true }
        let answer = try rig.resolve(asked, [record(.https, service((1, h2h3), (4, [192, 168, 1, 1]), (6, v6)))])
        #expect(answer.data(.https) == [service((1, h2h3))] && answer.error == .forgedAnswer)
        // Blocked is blocked.
        var blocking = try Rig(
            DNSProxyConfiguration.plain.with(rules: "||ads.example^").with { $0.rewriting.removesHints = true })
        let target = bytes(1 as UInt16) + wire("x.ads.example") + bytes(4 as UInt16) + bytes(4 as UInt16) + v4
        #expect(try blocking.resolve(asked, [record(.https, target)]).error == .blocked)
    }

    @Test("H4: a reload acts on what is kept")
    func reload() throws {
        var rig = try Rig()
        let full = service((1, h2h3), (5, [1, 2, 3]))
        try rig.resolve(asked, [record(.https, full)])
        try rig.provider.reload(DNSProxyConfiguration.plain.with { $0.rewriting.removesECH = true }, at: rig.now)
        #expect(try rig.resolve(asked, [record(.https, full)]).data(.https) == [service((1, h2h3))])
    }

    @Test("B17: addresses that are made are not authentic, and have no signatures")
    func dns64() throws {
        var rig = try Rig(.dns64(trusted: true))
        let asked = query("h2.example.com", .aaaa, opt: opt(dnssecOK: true))
        let (client, sent) = try rig.forward(asked)
        rig.deliver(reply(to: sent, flags: 0x81A0, authority: [soa("example.com", ttl: 300, minimum: 300)]))
        let second = try #require(rig.open.last?.query)
        rig.deliver(reply(to: second, flags: 0x81A0, [record(.a, v4), signature(.a)]))
        let answer = try rig.answer(of: client)
        #expect(answer.records.map(\.type) == [.aaaa] && !answer.flags.contains(.authenticData))
        #expect(!(try rig.ask(asked).answer.flags.contains(.authenticData)))
    }
}
