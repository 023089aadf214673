import DNSMessage
import DNSProxy
import Provider
import Testing

@Suite("Answers that are too old")
struct StaleAnswerTests {
    private let asked = query("example.com", opt: opt())

    /// A provider that keeps an answer, which has just become too old.
    private func aged(
        _ configuration: DNSProxyConfiguration = .plain, ttl: UInt32 = 300, flags: UInt16 = 0x8180,
        query: [UInt8]? = nil
    ) throws -> Rig {
        var rig = try Rig(configuration)
        try rig.resolve(query ?? asked, flags: flags, [record(.a, ttl: ttl, address(192, 0, 2, 1))])
        rig.pass(.seconds(UInt64(ttl)))
        return rig
    }

    @Test(
        "F8: after a failure the old answer is given with EDE 3, for 30 seconds and no more than it had",
        arguments: [(300, 30), (31, 30), (7, 7)] as [(UInt32, UInt32)])
    func afterFailure(ttl: UInt32, given: UInt32) throws {
        var rig = try aged(ttl: ttl)
        let client = try rig.ask(asked).client
        rig.fail(.unreachable)
        let answer = try rig.answer(of: client)
        #expect(answer.code == .noError && answer.data(.a) == [[192, 0, 2, 1]])
        #expect(answer.ttls(.a) == [given] && answer.error == .staleAnswer)
        #expect(rig.provider.status(at: rig.now).counters.stale == 1)
    }

    @Test("F8: after a failure no server is asked for 30 seconds; then one is, and its answer replaces the old one")
    func recheck() throws {
        var rig = try aged()
        _ = try rig.ask(asked).client
        rig.fail(.unreachable)
        rig.pass(.milliseconds(29_999))
        #expect(try rig.ask(asked).answer.error == .staleAnswer)
        #expect(rig.begun.count == 2)
        rig.pass(.milliseconds(1))
        let answer = try rig.resolve(asked, [record(.a, ttl: 300, address(192, 0, 2, 2))])
        #expect(answer.data(.a) == [[192, 0, 2, 2]] && answer.error == nil)
        let kept = try rig.ask(asked).answer
        #expect(kept.data(.a) == [[192, 0, 2, 2]] && kept.error == nil)
    }

    @Test("F8: clients wait for 1.8 seconds for a silent server; its late answer is kept")
    func patience() throws {
        var rig = try aged()
        let client = try rig.ask(asked).client
        let other = try rig.ask(asked).client
        rig.pass(.milliseconds(1799))
        #expect(rig.answers.count == 1)
        rig.pass(.milliseconds(1))
        #expect(try rig.answer(of: client).error == .staleAnswer)
        #expect(try rig.answer(of: other).error == .staleAnswer)
        #expect(rig.open.count == 2 && rig.cancelled.isEmpty)
        #expect(try rig.ask(asked).answer.error == .staleAnswer)
        // The steps of an exchange go on although nobody waits.
        rig.pass(.seconds(2))
        #expect(rig.begun.count == 4)
        rig.deliver(reply(to: try #require(rig.open.last?.query), [record(.a, address(192, 0, 2, 2))]))
        #expect(try rig.answer(of: client).data(.a) == [[192, 0, 2, 1]])
        #expect(try rig.ask(asked).answer.data(.a) == [[192, 0, 2, 2]])
        #expect(rig.open.isEmpty && rig.provider.nextDeadline == nil)
    }

    @Test("F8: a silent server is given up at the deadline, and asked again 30 seconds later")
    func silence() throws {
        var rig = try aged()
        let client = try rig.ask(asked).client
        rig.pass(.seconds(5))
        #expect(try rig.answer(of: client).error == .staleAnswer)
        #expect(rig.open.isEmpty && rig.provider.nextDeadline == nil)
        rig.pass(.milliseconds(29_999))
        #expect(try rig.ask(asked).answer.error == .staleAnswer)
        rig.pass(.milliseconds(1))
        _ = try rig.ask(asked).client
    }

    @Test("F8: a server's failure does not replace the old answer", arguments: [2, 5] as [UInt16])
    func refusal(code: UInt16) throws {
        var rig = try aged()
        for _ in 0..<2 {
            #expect(try rig.resolve(asked, flags: 0x8180 | code).error == .staleAnswer)
            rig.pass(.seconds(30))
        }
    }

    @Test(
        "F8: that a name or type does not exist replaces the old answer, whether that is kept or not",
        arguments: [0x8180, 0x8183] as [UInt16], [true, false])
    func negative(flags: UInt16, isKept: Bool) throws {
        var rig = try aged()
        let authority = isKept ? [soa("example.com", ttl: 10, minimum: 10)] : []
        let answer = try rig.resolve(asked, flags: flags, authority: authority)
        #expect(answer.code.rawValue == flags & 0xF && answer.data(.a).isEmpty && answer.error == nil)
        rig.pass(.seconds(10))
        let client = try rig.ask(asked).client
        rig.fail(.unreachable)
        let later = try rig.answer(of: client)
        #expect(later.data(.a).isEmpty)
        #expect(later.code == (isKept ? answer.code : .serverFailure))
    }

    @Test("F8: an old NXDOMAIN has EDE 19")
    func nameError() throws {
        var rig = try Rig()
        try rig.resolve(asked, flags: 0x8183, authority: [soa("example.com", ttl: 300, minimum: 300)])
        rig.pass(.seconds(300))
        let client = try rig.ask(asked).client
        rig.fail(.unreachable)
        let answer = try rig.answer(of: client)
        #expect(answer.code == .nameError && answer.error == .staleNXDomainAnswer && answer.ttls(.soa) == [30])
    }

    @Test("F8: an answer older than the limit is not given, and none is when there is no limit", arguments: [0, 60])
    func limit(seconds: UInt64) throws {
        let configuration = DNSProxyConfiguration.plain.with { $0.staleLimit = .seconds(seconds) }
        var rig = try aged(configuration)
        if seconds > 0 {
            rig.pass(.milliseconds(seconds * 1000 - 1))
            let client = try rig.ask(asked).client
            rig.fail(.unreachable)
            #expect(try rig.answer(of: client).error == .staleAnswer)
            rig.pass(.milliseconds(1))
        }
        let client = try rig.ask(asked).client
        rig.fail(.unreachable)
        #expect(try rig.answer(of: client).code == .serverFailure)
        #expect(try rig.ask(asked).answer.error == .cachedError)
    }

    @Test("F8: who checks signatures itself gets no old answer, and nobody does when signatures are wrong")
    func signatures() throws {
        let unchecked = query("example.com", flags: 0x0110, opt: opt())
        var rig = try aged(query: unchecked)
        let client = try rig.ask(unchecked).client
        rig.fail(.unreachable)
        #expect(try rig.answer(of: client).code == .serverFailure)
        var bogus = try aged()
        let (other, sent) = try bogus.forward(asked)
        bogus.deliver(reply(to: sent, flags: 0x8182, additional: [opt(option(15, [0, 6]))]))
        let answer = try bogus.answer(of: other)
        #expect(answer.code == .serverFailure && answer.error == .dnssecBogus)
    }

    @Test("F8: an old answer is not said to be authentic any more")
    func authenticData() throws {
        let secure = query("example.com", opt: opt(dnssecOK: true))
        var rig = try aged(.servers(.udp, trusted: true), flags: 0x81A0, query: secure)
        let client = try rig.ask(secure).client
        rig.fail(.unreachable)
        let answer = try rig.answer(of: client)
        #expect(answer.error == .staleAnswer && !answer.flags.contains(.authenticData))
    }

    @Test("F8: rules hold for old answers, for those that came before them too")
    func rules() throws {
        var rig = try Rig()
        let alias = record(.cname, ttl: 60, wire("x.tracker.example"))
        try rig.resolve(asked, [alias, record(.a, owner: "x.tracker.example", ttl: 60, address(192, 0, 2, 1))])
        rig.pass(.seconds(60))
        try rig.provider.reload(try DNSProxyConfiguration.plain.with(rules: "||tracker.example^"), at: rig.now)
        let client = try rig.ask(asked).client
        rig.fail(.unreachable)
        let answer = try rig.answer(of: client)
        #expect(answer.data(.a) == [[0, 0, 0, 0]] && answer.error == .blocked)
        #expect(try rig.ask(asked).answer.error == .blocked)
    }

    @Test("F8: on another path servers are asked at once, and a stop gives no old answers")
    func lifecycle() throws {
        var rig = try aged()
        rig.provider.pathChanged(NetworkPath(interfaceIndex: 2), at: rig.now)
        _ = try rig.ask(asked).client
        rig.fail(.unreachable)
        #expect(try rig.ask(asked).answer.error == .staleAnswer)
        rig.provider.pathChanged(NetworkPath(interfaceIndex: 3), at: rig.now)
        rig.carryOut()
        let client = try rig.ask(asked).client
        rig.provider.stop(.userInitiated, at: rig.now)
        rig.carryOut()
        #expect(try rig.answer(of: client).error == .notReady)
    }

    @Test(
        "F9: TTLs are brought into bounds before an answer is kept, but not one of 0 and not those of negative answers")
    func bounds() throws {
        var rig = try Rig(.plain.with { $0.timeToLiveBounds = 60...100 })
        for (ttl, given) in [(5, 60), (80, 80), (5000, 100), (0, 0)] as [(UInt32, UInt32)] {
            let asked = query("n\(ttl).example")
            #expect(try rig.resolve(asked, [record(.a, ttl: ttl, address(192, 0, 2, 1))]).ttls(.a) == [given])
            guard given > 0 else { continue }
            rig.pass(.milliseconds(UInt64(given) * 1000 - 1))
            #expect(try rig.ask(asked).answer.ttls(.a) == [1])
            rig.pass(.milliseconds(1))
            _ = try rig.ask(asked).client
            rig.fail(.unreachable)
        }
        _ = try rig.ask(query("n0.example")).client
        let absent = try rig.resolve(query("x.example"), authority: [soa("example", ttl: 5, minimum: 5)])
        #expect(absent.ttls(.soa) == [5])
        rig.pass(.seconds(5))
        _ = try rig.ask(query("x.example")).client
    }

    @Test("F9, D9: what HTTP says about the end of an answer's time wins over the least TTL")
    func boundsByHTTPS() throws {
        var rig = try Rig(.servers(.https).with { $0.timeToLiveBounds = 60...100 })
        let (client, sent) = try rig.forward(asked)
        rig.deliver(
            reply(to: sent, [record(.a, ttl: 30, address(192, 0, 2, 1))]), freshness: AnswerFreshness(lifetime: 20))
        #expect(try rig.answer(of: client).ttls(.a) == [20])
    }
}
