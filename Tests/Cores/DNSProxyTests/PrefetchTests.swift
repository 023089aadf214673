import DNSMessage
import DNSProxy
import IPPacket
import Provider
import Testing

@Suite("Answers that are asked for anew before they are too old")
struct PrefetchTests {
    private let asked = query("hot.example", opt: opt())
    private let configuration = DNSProxyConfiguration.plain.with { $0.prefetches = true }

    /// A provider that has an answer of which a tenth of the time, and a little more, is left, after so many clients had it.
    private func rig(
        _ configuration: DNSProxyConfiguration, ttl: UInt32 = 100, uses: Int = 2, flags: UInt16 = 0x8180,
        _ answers: [[UInt8]]? = nil, authority: [[UInt8]] = []
    ) throws -> Rig {
        var rig = try Rig(configuration)
        try rig.resolve(
            asked, flags: flags, answers ?? [record(.a, ttl: ttl, address(192, 0, 2, 1))], authority: authority)
        for _ in 0..<uses { _ = try rig.ask(asked).answer }
        rig.pass(.milliseconds(UInt64(ttl) * 900))
        return rig
    }

    @Test("When less than a tenth of the time is left the client has the answer at once, and the server is asked")
    func prefetch() throws {
        var rig = try rig(configuration)
        #expect(try rig.ask(asked).answer.ttls(.a) == [10])
        #expect(rig.begun.count == 1)
        rig.pass(.milliseconds(1))
        #expect(try rig.ask(asked).answer.data(.a) == [[192, 0, 2, 1]])
        #expect(rig.begun.count == 2)
        // Once is enough.
        #expect(try rig.ask(asked).answer.data(.a) == [[192, 0, 2, 1]])
        #expect(rig.begun.count == 2 && rig.provider.status(at: rig.now).waiting == 0)
        rig.deliver(reply(to: rig.open[0].query, [record(.a, ttl: 100, address(192, 0, 2, 2))]))
        let answer = try rig.ask(asked).answer
        #expect(answer.data(.a) == [[192, 0, 2, 2]] && answer.ttls(.a) == [100])
        let status = rig.provider.status(at: rig.now)
        #expect(status.counters.prefetches == 1 && status.counters.failedPrefetches == 0 && status.lookups == 0)
        #expect(status.counters.forwarded == 1)
    }

    @Test(
        "What few want is not asked for, nor anything unless the configuration says so, nor what is kept for a moment")
    func notWanted() throws {
        var rare = try rig(configuration, uses: 1)
        rare.pass(.seconds(5))
        _ = try rare.ask(asked).answer
        #expect(rare.begun.count == 1)
        var off = try rig(.plain, uses: 5)
        off.pass(.seconds(5))
        _ = try off.ask(asked).answer
        #expect(off.begun.count == 1)
        var short = try rig(configuration, ttl: 9, uses: 5)
        short.pass(.milliseconds(500))
        _ = try short.ask(asked).answer
        #expect(short.begun.count == 1)
    }

    @Test("What does not exist, and what is held back, is not asked for")
    func notPositive() throws {
        for flags: UInt16 in [0x8180, 0x8183] {
            var rig = try rig(configuration, flags: flags, [], authority: [soa("example", ttl: 100, minimum: 100)])
            rig.pass(.seconds(5))
            _ = try rig.ask(asked).answer
            #expect(rig.begun.count == 1)
        }
        var inside = try rig(configuration, [record(.a, ttl: 100, address(10, 0, 0, 1))])
        inside.pass(.seconds(5))
        _ = try inside.ask(asked).answer
        #expect(inside.begun.count == 1)
    }

    @Test("When it fails, what is kept stays; it is tried again when half of what was left is over, and so on")
    func failures() throws {
        var rig = try rig(configuration)
        let start = rig.now
        var times: [UInt64] = []
        while rig.now.since(start) < .milliseconds(9900) {
            rig.pass(.milliseconds(100))
            let begun = rig.begun.count
            #expect(try rig.ask(asked).answer.data(.a) == [[192, 0, 2, 1]])
            guard rig.begun.count > begun else { continue }
            times.append(rig.now.since(start).nanoseconds / 1_000_000)
            rig.deliver(reply(to: try #require(rig.open.last?.query), flags: 0x8182))
        }
        #expect(times == [100, 5100, 7600, 8800, 9400, 9700, 9900])
        let status = rig.provider.status(at: rig.now)
        #expect(status.counters.failedPrefetches == 7 && status.lookups == 0)
        // A client that comes when the time is over waits for a server, as always.
        rig.pass(.milliseconds(100))
        _ = try rig.ask(asked).client
    }

    @Test(
        "Who comes when the answer has become too old meanwhile waits for what is under way, and no longer than others")
    func joining() throws {
        var rig = try rig(configuration)
        rig.pass(.milliseconds(9900))
        _ = try rig.ask(asked).answer
        rig.pass(.milliseconds(100))
        let client = try rig.ask(asked).client
        #expect(rig.provider.status(at: rig.now).lookups == 1)
        rig.pass(.milliseconds(1799))
        #expect(rig.answers[client] == nil)
        rig.pass(.milliseconds(1))
        #expect(try rig.answer(of: client).error == .staleAnswer)
    }

    @Test("How many are under way that nobody waits for is bounded")
    func bound() throws {
        var rig = try Rig(configuration)
        let queries = (0..<40).map { query("hot\($0).example") }
        for asked in queries { try rig.resolve(asked, [record(.a, ttl: 100, address(192, 0, 2, 1))]) }
        for asked in queries + queries { _ = try rig.ask(asked).answer }
        rig.pass(.seconds(91))
        for asked in queries { _ = try rig.ask(asked).answer }
        #expect(rig.open.count == 32)
        for index in rig.open.indices.reversed() {
            rig.deliver(reply(to: rig.open[index].query, [record(.a, ttl: 100, address(192, 0, 2, 1))]), at: index)
        }
        for asked in queries { _ = try rig.ask(asked).answer }
        #expect(rig.open.count == 8 && rig.provider.status(at: rig.now).counters.prefetches == 40)
    }
}
