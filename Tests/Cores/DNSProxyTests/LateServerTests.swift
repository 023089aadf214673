import DNSMessage
import DNSProxy
import Provider
import Testing

@Suite("Servers that take longer than usual")
struct LateServerTests {
    private let found = record(.a, address(192, 0, 2, 1))

    /// A provider whose servers are known to take so many milliseconds.
    private func rig(_ transports: [ExchangeTransport], _ milliseconds: UInt64) throws -> Rig {
        var rig = try Rig(
            DNSProxyConfiguration(
                upstreams: transports.enumerated().map { DNSUpstream(name: "s\($0)", transport: $1) }
            ).with { $0.strategy = .parallel })
        for number in transports.indices {
            let client = try rig.ask(query("known\(number).example")).client
            rig.pass(.milliseconds(milliseconds))
            let index = try #require(rig.open.firstIndex { $0.exchange.upstream.index == number })
            rig.deliver(reply(to: rig.open[index].query, [found]), at: index)
            #expect(try rig.answer(of: client).code == .noError)
        }
        try rig.provider.reload(
            DNSProxyConfiguration(
                upstreams: transports.enumerated().map { DNSUpstream(name: "s\($0)", transport: $1) }), at: rig.now)
        rig.carryOut()
        rig.begun = []
        return rig
    }

    /// When the exchanges of a question that nobody answers began, in milliseconds, and with which servers.
    private func silence(_ rig: inout Rig) throws -> [(time: UInt64, server: Int)] {
        let start = rig.now
        let client = try rig.ask(query("silent.example")).client
        var found: [(time: UInt64, server: Int)] = []
        while true {
            while found.count < rig.begun.count {
                let server = rig.begun[found.count].upstream.index
                found.append((rig.now.since(start).nanoseconds / 1_000_000, server))
            }
            guard rig.answers[client] == nil else { return found }
            rig.pass(.milliseconds(1))
        }
    }

    @Test(
        "A server is late after four times its usual time, 200 ms at least; what is left is shared by a second round",
        arguments: [(5, 200), (50, 200), (100, 400)] as [(UInt64, UInt64)])
    func late(usual: UInt64, late: UInt64) throws {
        var rig = try rig([.udp], usual)
        let begun = try silence(&rig)
        #expect(begun.map(\.time) == [0, late, late + (5000 - late) / 2])
        #expect(rig.provider.status(at: rig.now).upstreams[0].failures == 3)
    }

    @Test("A server whose usual time is not known has its share of the time")
    func unknown() throws {
        var rig = try Rig(.servers(.udp, .udp))
        let begun = try silence(&rig)
        #expect(begun.map(\.time) == [0, 1250, 2500, 3750] && begun.map(\.server) == [0, 0, 1, 1])
    }

    @Test("Where there is another server, it is asked soon; then each once more, in shares of the time that is left")
    func next() throws {
        for transports: [ExchangeTransport] in [[.udp, .udp], [.tls, .https]] {
            var rig = try rig(transports, 10)
            let begun = try silence(&rig)
            #expect(begun.map(\.server) == [0, 1, 0, 1])
            #expect(begun.map(\.time) == [0, 200, 1800, 3400])
            #expect(rig.begun.map(\.needsFreshConnection) == [false, false, true, true])
        }
    }

    @Test("Where there is no other, a new connection is made after three quarters of a second at the earliest")
    func fresh() throws {
        var rig = try rig([.tls], 10)
        let begun = try silence(&rig)
        #expect(begun.map(\.time) == [0, 750, 2875])
        #expect(rig.begun.map(\.needsFreshConnection) == [false, true, true])
    }

    @Test("When everything takes longer, few questions are put twice")
    func budget() throws {
        var rig = try rig([.udp], 10)
        for number in 0..<100 { _ = try rig.ask(query("slow\(number).example")).client }
        rig.pass(.milliseconds(1000))
        #expect(rig.begun.count == 110)
        while !rig.open.isEmpty { rig.deliver(reply(to: rig.open[0].query, [found]), at: 0) }
        #expect(rig.answers.count == 101)
    }

    @Test("A late answer to the first attempt counts, and tells that the server has become slower")
    func lateAnswers() throws {
        var rig = try rig([.udp], 10)
        for number in 0..<10 {
            let client = try rig.ask(query("slow\(number).example")).client
            rig.pass(.milliseconds(300))
            rig.deliver(reply(to: rig.open[0].query, [found]), at: 0)
            #expect(try rig.answer(of: client).code == .noError)
            #expect(rig.open.isEmpty)
        }
        // It is waited for by now.
        #expect(rig.begun.count < 15 && rig.cancelled.count < 5)
        #expect(rig.provider.status(at: rig.now).upstreams[0].isDown == false)
    }

    @Test("A question that takes its time is not asked again of a server that answers others meanwhile")
    func slowQuestion() throws {
        var rig = try rig([.tls], 10)
        let slow = try rig.ask(query("slow.example")).client
        for number in 0..<15 {
            _ = try rig.ask(query("fast\(number).example")).client
            rig.pass(.milliseconds(100))
            rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        }
        #expect(rig.begun.count == 16)
        rig.deliver(reply(to: rig.open[0].query, [found]), at: 0)
        #expect(try rig.answer(of: slow).code == .noError)
    }

    @Test("What the host is told of how long a server may take is what is known of it")
    func patience() throws {
        var unknown = try Rig(.servers(.tls))
        _ = try unknown.ask(query("example.com")).client
        #expect(unknown.begun[0].patience == .seconds(1))
        var known = try rig([.tls], 100)
        _ = try known.ask(query("example.com")).client
        known.pass(.milliseconds(750))
        #expect(known.begun.map(\.patience) == [.milliseconds(750), .milliseconds(800)])
    }
}
