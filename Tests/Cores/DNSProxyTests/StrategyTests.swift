import DNSMessage
import DNSProxy
import Provider
import Testing

@Suite("Which servers are asked first")
struct StrategyTests {
    private let found = record(.a, address(192, 0, 2, 1))

    private func servers(_ count: Int, _ strategy: UpstreamStrategy, _ transport: ExchangeTransport = .udp)
        -> DNSProxyConfiguration
    {
        DNSProxyConfiguration(
            upstreams: (0..<count).map { DNSUpstream(name: "s\($0)", transport: transport) }
        ).with { ($0.strategy, $0.cacheByteCount) = (strategy, 0) }
    }

    /// Puts a query to servers that take so many milliseconds each; nil stands for silence. Returns who was asked, in order.
    private func ask(_ rig: inout Rig, _ times: [UInt64?]) throws -> [Int] {
        let (start, before) = (rig.now, rig.begun.count)
        let client = try rig.ask(query("n\(before).example")).client
        for millisecond in 0..<5000 as Range<UInt64> where rig.answers[client] == nil {
            let due = start + .milliseconds(millisecond)
            if due > rig.now { rig.pass(due.since(rig.now)) }
            let index = rig.open.firstIndex { times[$0.exchange.upstream.index].map { $0 <= millisecond } ?? false }
            if let index { rig.deliver(reply(to: rig.open[index].query, [found]), at: index) }
        }
        #expect(try rig.answer(of: client).code == .noError)
        return rig.begun[before...].map(\.upstream.index)
    }

    @Test("Fastest: servers are compared side by side, and then the fastest has the questions")
    func fastest() throws {
        var rig = try Rig(servers(3, .fastest))
        let times: [UInt64?] = [80, 40, 5]
        #expect(try ask(&rig, times) == [0, 1])
        #expect(try ask(&rig, times) == [1, 2])
        for _ in 0..<20 { #expect(try ask(&rig, times) == [2]) }
        // No comparison is for ever.
        rig.pass(.seconds(60))
        #expect(try ask(&rig, times) == [2, 1])
        #expect(try ask(&rig, times) == [2, 0])
        #expect(try ask(&rig, times) == [2])
    }

    @Test("Fastest: a server that has become slow is left, and one that has become fast is found within a minute")
    func change() throws {
        var rig = try Rig(servers(2, .fastest))
        for _ in 0..<5 { _ = try ask(&rig, [5, 30]) }
        #expect(try ask(&rig, [5, 30]) == [0])
        var asked = 0
        while try ask(&rig, [150, 30]) == [0] { asked += 1 }
        #expect(asked < 8)
        #expect(try ask(&rig, [150, 30]) == [1])
        rig.pass(.seconds(60))
        #expect(try ask(&rig, [5, 30]) == [1, 0])
        #expect(try ask(&rig, [5, 30]) == [0])
    }

    @Test("Fastest: what fails is asked behind the others, and beside them when it may be back")
    func failures() throws {
        var rig = try Rig(servers(2, .fastest))
        for _ in 0..<5 { _ = try ask(&rig, [5, 30]) }
        let client = try rig.ask(query("failed.example")).client
        rig.fail(.unreachable)
        #expect(rig.begun.suffix(2).map(\.upstream.index) == [0, 1])
        rig.deliver(reply(to: rig.open[0].query, [found]))
        #expect(try rig.answer(of: client).code == .noError)
        #expect(try ask(&rig, [nil, 30]) == [1])
        rig.pass(.seconds(1))
        #expect(try ask(&rig, [nil, 30]) == [1, 0])
        // It has lost the race, which says little.
        #expect(try ask(&rig, [nil, 30]) == [1])
        rig.pass(.seconds(1))
        #expect(try ask(&rig, [5, 30]) == [1, 0])
        #expect(try ask(&rig, [5, 30]) == [0])
    }

    @Test("Parallel: three are asked at once, the first answer counts, and the others are cancelled")
    func parallel() throws {
        var rig = try Rig(servers(5, .parallel))
        let client = try rig.ask(query("example.com")).client
        #expect(rig.begun.map(\.upstream.index) == [0, 1, 2])
        rig.deliver(reply(to: rig.open[1].query, [found]), at: 1)
        #expect(try rig.answer(of: client).data(.a).count == 1)
        #expect(rig.cancelled.count == 2 && rig.open.isEmpty)
    }

    @Test("Parallel: refusals and failures leave it to the others; when all three cannot answer, the next are asked")
    func parallelFailures() throws {
        var rig = try Rig(servers(5, .parallel))
        let client = try rig.ask(query("example.com")).client
        rig.deliver(reply(to: rig.open[0].query, flags: 0x8182), at: 0)
        rig.fail(.unreachable, at: 0)
        #expect(rig.begun.count == 3 && rig.answers.isEmpty)
        rig.deliver(reply(to: rig.open[0].query, flags: 0x8185), at: 0)
        #expect(rig.begun.map(\.upstream.index) == [0, 1, 2, 3, 4])
        rig.deliver(reply(to: rig.open[1].query, flags: 0x8183), at: 1)
        #expect(try rig.answer(of: client).code == .nameError)
        // One that is down is not asked at first.
        _ = try rig.ask(query("example.org")).client
        #expect(rig.begun[5...].map(\.upstream.index) == [0, 2, 3])
    }

    @Test("Parallel: a connection that was lost is replaced at once, whatever the others do")
    func parallelConnections() throws {
        var rig = try Rig(servers(2, .parallel, .tls))
        let client = try rig.ask(query("example.com")).client
        rig.fail(.connectionClosed, at: 0)
        #expect(rig.begun.map(\.upstream.index) == [0, 1, 0] && rig.begun[2].needsFreshConnection)
        rig.fail(.connectionClosed, at: 1)
        #expect(rig.begun.count == 3 && rig.answers.isEmpty)
        rig.fail(.untrusted, at: 0)
        #expect(try rig.answer(of: client).code == .serverFailure)
    }

    @Test("Parallel: all that are silent end in time; each is asked once more on the way")
    func parallelSilence() throws {
        var rig = try Rig(servers(2, .parallel).with { $0.timeout = .seconds(2) })
        let client = try rig.ask(query("example.com")).client
        rig.pass(.milliseconds(1999))
        #expect(rig.begun.map(\.upstream.index) == [0, 1, 0, 1] && rig.answers.isEmpty)
        rig.pass(.milliseconds(1))
        #expect(try rig.answer(of: client).code == .serverFailure)
        let status = rig.provider.status(at: rig.now)
        #expect(status.upstreams.map(\.failures) == [2, 2] && rig.provider.nextDeadline == nil)
    }

    @Test("Parallel: what came first counts, a verdict about signatures too")
    func parallelBogus() throws {
        for isBogusFirst in [true, false] {
            var rig = try Rig(servers(2, .parallel))
            let client = try rig.ask(query("example.com", opt: opt())).client
            let bogus = reply(to: rig.open[0].query, flags: 0x8182, additional: [opt(option(15, [0, 6]))])
            let good = reply(to: rig.open[1].query, [found])
            rig.deliver(isBogusFirst ? bogus : good, at: isBogusFirst ? 0 : 1)
            #expect(try rig.answer(of: client).error == (isBogusFirst ? .dnssecBogus : nil))
            #expect(rig.open.isEmpty)
        }
    }

    @Test("A route has a strategy of its own; another one is followed by a reload, and what is kept stays")
    func routes() throws {
        var configuration = servers(4, .ordered)
        configuration.cacheByteCount = 100_000
        configuration.defaultUpstreams = [UpstreamID(index: 0), UpstreamID(index: 1)]
        let domain = try DomainName(parsing: "corp.example")
        func route(_ strategy: UpstreamStrategy?) -> [DomainRoute] {
            [
                DomainRoute(
                    domains: [domain], upstreams: [UpstreamID(index: 2), UpstreamID(index: 3)], strategy: strategy)
            ]
        }
        configuration.routes = route(.parallel)
        var rig = try Rig(configuration)
        try rig.resolve(query("kept.example"), [found])
        try rig.resolve(query("a.corp.example"), [found])
        #expect(rig.begun.map(\.upstream.index) == [0, 2, 3])
        configuration.routes = route(nil)
        try rig.provider.reload(configuration, at: rig.now)
        #expect(try rig.ask(query("kept.example")).answer.data(.a).count == 1)
        try rig.resolve(query("b.corp.example"), [found])
        configuration.strategy = .parallel
        try rig.provider.reload(configuration, at: rig.now)
        try rig.resolve(query("c.example"), [found])
        #expect(rig.begun[3...].map(\.upstream.index) == [2, 0, 1] && rig.resets == 0)
    }
}
