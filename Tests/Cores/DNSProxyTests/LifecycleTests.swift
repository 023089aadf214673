import DNSMessage
import DNSProxy
import IPPacket
import Provider
import Testing

@Suite("Start, stop, sleep and paths")
struct LifecycleTests {
    private let found = record(.a, ttl: 600, address(192, 0, 2, 1))

    @Test("A configuration that cannot be followed does not start")
    func badConfigurations() throws {
        let none = DNSProxyConfiguration(upstreams: [])
        let unknown = DNSProxyConfiguration(
            upstreams: DNSProxyConfiguration.plain.upstreams, defaultUpstreams: [UpstreamID(index: 1)])
        #expect(throws: DNSProxyError.noUpstream) { _ = try Rig(none) }
        #expect(throws: DNSProxyError.unknownUpstream(UpstreamID(index: 1))) { _ = try Rig(unknown) }
    }

    @Test("A stop answers all who wait and cancels what is under way; flows are terminated before and after")
    func stop() throws {
        var rig = try Rig()
        #expect(rig.provider.handleNewFlow() == .handle)
        let client = try rig.ask(query("example.com", opt: opt())).client
        rig.provider.stop(.userInitiated, at: rig.now)
        rig.carryOut()
        #expect(try rig.answer(of: client).error == .notReady)
        #expect(rig.open.isEmpty && rig.provider.nextDeadline == nil)
        #expect(rig.provider.handleNewFlow() == .terminate)
        #expect(try rig.ask(query("example.com")).answer.code == .serverFailure)
        try rig.provider.start(.plain, at: rig.now)
        _ = try rig.ask(query("example.com")).client
    }

    @Test("While the machine sleeps there is no deadline; waking, what is overdue fails and the rest is asked anew")
    func sleep() throws {
        var rig = try Rig(.servers(.tls))
        let old = try rig.ask(query("old.example")).client
        rig.pass(.seconds(2))
        rig.provider.sleep()
        #expect(rig.provider.nextDeadline == nil)
        rig.pass(.seconds(2))
        let young = try rig.ask(query("young.example")).client
        rig.now = rig.now + .seconds(2)
        rig.provider.wake(at: rig.now)
        rig.carryOut()
        #expect(try rig.answer(of: old).code == .serverFailure)
        #expect(rig.resets == 1 && rig.open.count == 1)
        rig.deliver(reply(to: rig.open[0].query, [found]))
        #expect(try rig.answer(of: young).code == .noError)
    }

    @Test("Another path resets connections, asks what is under way anew and forgets failures")
    func paths() throws {
        var rig = try Rig()
        let home = NetworkPath(interfaceIndex: 2, interfaceName: "home")
        let street = NetworkPath(interfaceIndex: 3, interfaceName: "street")
        rig.provider.pathChanged(home, at: rig.now)
        let failed = try rig.ask(query("failed.example")).client
        rig.fail(.unreachable)
        #expect(try rig.answer(of: failed).code == .serverFailure)
        let client = try rig.ask(query("example.com")).client
        rig.provider.pathChanged(.none, at: rig.now)
        rig.provider.pathChanged(home, at: rig.now)
        rig.carryOut()
        #expect(rig.resets == 0)
        rig.provider.pathChanged(street, at: rig.now)
        rig.carryOut()
        #expect(rig.resets == 1 && rig.cancelled.count == 1 && rig.open.count == 1)
        rig.deliver(reply(to: rig.open[0].query, [found]))
        #expect(try rig.answer(of: client).code == .noError)
        _ = try rig.ask(query("failed.example")).client
    }

    @Test("Other servers take over what is under way, and answers of the old ones are forgotten")
    func reload() throws {
        var rig = try Rig()
        try rig.resolve(query("kept.example"), [found])
        let client = try rig.ask(query("example.com")).client
        try rig.provider.reload(.servers(.tls), at: rig.now)
        rig.carryOut()
        #expect(rig.begun.last?.transport == .tls)
        rig.deliver(reply(to: rig.open[0].query, [found]))
        #expect(try rig.answer(of: client).code == .noError)
        _ = try rig.ask(query("kept.example")).client
    }

    @Test("Memory is given back when it is short")
    func memory() throws {
        var rig = try Rig()
        for number in 0..<10 { try rig.resolve(query("n\(number).example"), [found]) }
        rig.provider.shed(MemoryLevel.warning.shedding)
        #expect(rig.provider.status(at: rig.now).cachedAnswers == 5)
        rig.provider.shed(MemoryLevel.critical.shedding)
        #expect(rig.provider.status(at: rig.now).cachedAnswers == 0)
        #expect(rig.provider.handleNewFlow() == .terminate)
        rig.provider.shed(MemoryLevel.normal.shedding)
        #expect(rig.provider.handleNewFlow() == .handle)
    }

    @Test("No name that is asked about is in the log")
    func log() throws {
        var rig = try Rig(.servers(.tls, .udp))
        _ = try rig.ask(query("secret.example")).client
        rig.fail(.untrusted)
        rig.pass(.seconds(5))
        #expect(!rig.log.isEmpty)
        #expect(rig.log.allSatisfy { !$0.text(with: LogPrivacy(showPrivate: false)).contains("secret") })
    }
}
