import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("Exchanges with servers")
struct ExchangeTests {
    private let found = record(.a, address(192, 0, 2, 1))

    @Test("D1: the ID is 0 by HTTPS, and an answer with another is none; the client's own comes back")
    func identifierByHTTPS() throws {
        var rig = try Rig(.servers(.https))
        let (client, sent) = try rig.forward(query("example.com", id: 0x4321))
        #expect(sent.number(at: 0) == 0)
        rig.deliver(reply(to: sent, [found]))
        #expect(try rig.answer(of: client).id == 0x4321)
        let other = try rig.forward(query("other.example"))
        #expect(rig.deliver([0, 7] + reply(to: other.sent, [found])[2...]) == .finished)
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        #expect(rig.open.isEmpty)
    }

    @Test(
        "D11: queries are padded to blocks of 128 bytes where they are encrypted, and nowhere else",
        arguments: ExchangeTransport.allCases)
    func padding(transport: ExchangeTransport) throws {
        var rig = try Rig(.servers(transport))
        let long = [String](repeating: String(repeating: "a", count: 30), count: 6).joined(separator: ".")
        for name in ["a.b", "example.com", long] {
            let sent = try rig.forward(query(name)).sent
            #expect((sent.count % 128 == 0) == transport.isEncrypted)
            #expect(sent.count == (name == long ? 256 : 128) || !transport.isEncrypted)
        }
    }

    @Test("E1: a server that cannot prove who it is gets no query by another transport: SERVFAIL says so")
    func untrusted() throws {
        var rig = try Rig(.servers(.tls))
        let client = try rig.ask(query("example.com", opt: opt())).client
        rig.fail(.untrusted)
        #expect(try rig.answer(of: client).error == .networkError)
        #expect(rig.begun.map(\.transport) == [.tls])
    }

    @Test(
        "E5, D8: a connection that was lost, or is silent, is replaced by a fresh one to the same server",
        arguments: [true, false])
    func freshConnection(isSilent: Bool) throws {
        var rig = try Rig(.servers(.tls))
        let client = try rig.ask(query("example.com")).client
        let start = rig.now
        if isSilent { rig.pass(.seconds(3)) } else { rig.fail(.connectionClosed) }
        #expect(rig.begun.map(\.needsFreshConnection) == [false, true])
        #expect(rig.begun.allSatisfy { $0.deadline == start + .seconds(5) })
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        #expect(try rig.answer(of: client).code == .noError)
    }

    @Test(
        "E7: wrong IDs, questions, types, classes, counts and broken bytes are ignored by UDP until the right answer comes"
    )
    func wrongAnswers() throws {
        var rig = try Rig()
        let (client, sent) = try rig.forward(query("example.com"))
        let right = reply(to: sent, [found])
        var wrong: [[UInt8]] = [[], Array(right[..<11]), Array(right.dropLast()), [UInt8](repeating: 0xFF, count: 40)]
        wrong.append([right[0] ^ 1] + right[1...])
        wrong.append(Array(right[..<2]) + [0x01] + right[3...])
        wrong.append(reply(to: bytes(sent.number(at: 0)) + query("example.org")[2...], [found]))
        wrong.append(reply(to: bytes(sent.number(at: 0)) + query("example.com", .aaaa)[2...], [found]))
        wrong.append(reply(to: bytes(sent.number(at: 0)) + query("example.com", recordClass: 3)[2...], [found]))
        var two = right
        two[5] = 2
        wrong.append(two)
        for answer in wrong { #expect(rig.deliver(answer) == .keepWaiting) }
        #expect(rig.answers.isEmpty)
        #expect(rig.deliver(right) == .finished)
        #expect(try rig.answer(of: client).data(.a) == [[192, 0, 2, 1]])
        #expect(rig.provider.status(at: rig.now).counters.wrongAnswers == UInt64(wrong.count))
    }

    @Test(
        "E4: by a connection a wrong answer ends the exchange, and a fresh connection is tried",
        arguments: [ExchangeTransport.tcp, .tls, .https])
    func wrongAnswersByConnections(transport: ExchangeTransport) throws {
        var rig = try Rig(.servers(transport, .udp))
        let (client, sent) = try rig.forward(query("example.com"))
        #expect(rig.deliver(reply(to: bytes(sent.number(at: 0)) + query("example.org")[2...], [found])) == .finished)
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        #expect(try rig.answer(of: client).data(.a).count == 1)
        #expect(rig.begun.map(\.upstream.index) == [0, 0] && rig.begun[1].needsFreshConnection)
    }

    @Test(
        "E8: letters are mixed where others can forge; a server that loses them is asked by TCP, and not mixed for again"
    )
    func mixedCase() throws {
        let name = "a-long-enough-name.example.com"
        var rig = try Rig(.servers(.udp).with { $0.mixesCase = true })
        let (client, sent) = try rig.forward(query(name))
        let plain = wire(name)
        #expect(Array(sent[12..<12 + plain.count]) != plain)
        #expect(sent[12..<12 + plain.count].map { $0 | 0x20 } == plain.map { $0 | 0x20 })
        let lost = reply(to: Array(sent[..<12]) + plain + sent[(12 + plain.count)...], [found])
        #expect(rig.deliver(lost) == .keepWaiting)
        #expect(rig.begun.map(\.transport) == [.udp, .tcp])
        let byTCP = try #require(rig.open.last?.query)
        rig.deliver(reply(to: Array(byTCP[..<12]) + plain + byTCP[(12 + plain.count)...], [found]))
        #expect(try rig.answer(of: client).data(.a).count == 1)
        #expect(rig.provider.status(at: rig.now).upstreams[0].losesCase)
        #expect(Array(try rig.forward(query("b." + name)).sent[14..<14 + plain.count]) == plain)
        var encrypted = try Rig(.servers(.tls).with { $0.mixesCase = true })
        #expect(Array(try encrypted.forward(query(name)).sent[12..<12 + plain.count]) == plain)
    }

    @Test("E9: an unreachable server is passed over at once, left alone for a while, tried again and taken back")
    func failover() throws {
        var rig = try Rig(.servers(.udp, .udp).with { $0.cacheByteCount = 0 })
        func next(_ rig: inout Rig) throws -> Int {
            let client = try rig.ask(query("n\(rig.begun.count).example")).client
            let first = try #require(rig.begun.last).upstream.index
            rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
            _ = try rig.answer(of: client)
            return first
        }
        let client = try rig.ask(query("example.com")).client
        rig.fail(.unreachable)
        #expect(rig.begun.map(\.upstream.index) == [0, 1])
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        #expect(try rig.answer(of: client).code == .noError)
        // Left alone; then one query is put to it, which another server answers when it is still silent.
        #expect(try next(&rig) == 1)
        rig.pass(.seconds(1))
        let probe = try rig.ask(query("probe.example")).client
        #expect(rig.begun.last?.upstream.index == 0)
        #expect(try next(&rig) == 1)
        rig.pass(.milliseconds(300))
        for _ in 0..<2 where rig.begun.last?.upstream.index == 0 { rig.pass(.milliseconds(300)) }
        #expect(rig.begun.last?.upstream.index == 1)
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        #expect(try rig.answer(of: probe).code == .noError)
        #expect(try next(&rig) == 1)
        rig.pass(.seconds(30))
        #expect(try next(&rig) == 0)
        #expect(try next(&rig) == 0)
    }

    @Test(
        "A silent server ends in SERVFAIL with EDE 22 or 23 inside of the deadline",
        arguments: ExchangeTransport.allCases)
    func silence(transport: ExchangeTransport) throws {
        var rig = try Rig(.servers(transport, transport).with { $0.timeout = .seconds(2) })
        let client = try rig.ask(query("example.com", opt: opt())).client
        rig.pass(.milliseconds(1999))
        #expect(rig.answers.isEmpty)
        rig.pass(.milliseconds(1))
        let answer = try rig.answer(of: client)
        #expect(answer.code == .serverFailure)
        #expect(answer.error == .noReachableAuthority || answer.error == .networkError)
        #expect(rig.begun.map(\.upstream.index) == [0, 0, 1, 1])
        #expect(rig.open.isEmpty && rig.provider.nextDeadline == nil)
    }

    @Test("A late answer to the first attempt counts after a retry, and all others are cancelled")
    func lateAnswer() throws {
        var rig = try Rig(.servers(.udp, .tls))
        let client = try rig.ask(query("example.com")).client
        rig.pass(.seconds(4))
        #expect(rig.open.count == 4)
        rig.deliver(reply(to: rig.open[0].query, [found]), at: 0)
        #expect(try rig.answer(of: client).data(.a).count == 1)
        #expect(rig.cancelled.count == 3)
    }

    @Test("A connection of one server that is lost late does not let another be asked by its transport")
    func transportsStayApart() throws {
        var rig = try Rig(.servers(.udp, .tls))
        let (client, sent) = try rig.forward(query("example.com"))
        rig.pass(.seconds(3))
        #expect(rig.begun.map(\.transport) == [.udp, .udp, .tls])
        // The answer to the first is too long, and the connection that it needs is lost.
        rig.deliver(reply(to: sent, flags: 0x8380), at: 0)
        #expect(rig.begun.last?.transport == .tcp)
        rig.fail(.connectionClosed)
        rig.pass(.seconds(1))
        #expect(rig.begun.last?.transport == .tls && rig.begun.last?.needsFreshConnection == true)
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        #expect(try rig.answer(of: client).data(.a).count == 1)
    }

    @Test("A server's refusal lets the next be asked; the last one's is the client's", arguments: [2, 5] as [UInt16])
    func refusals(code: UInt16) throws {
        var rig = try Rig(.servers(.udp, .udp))
        let (client, sent) = try rig.forward(query("example.com"))
        rig.deliver(reply(to: sent, flags: 0x8180 | code))
        rig.deliver(reply(to: try #require(rig.open.last?.query), [found]))
        #expect(try rig.answer(of: client).code == .noError)
        let (other, sentAgain) = try rig.forward(query("other.example"))
        rig.deliver(reply(to: sentAgain, flags: 0x8180 | code))
        rig.deliver(reply(to: try #require(rig.open.last?.query), flags: 0x8180 | code))
        #expect(try rig.answer(of: other).code.rawValue == code)
    }

    @Test("C3: of many queries on one connection a slow one does not keep the others waiting")
    func outOfOrder() throws {
        var rig = try Rig(.servers(.tls))
        let clients = try (0..<20).map { try rig.ask(query("n\($0).example"), by: .tcp).client }
        for index in (1..<20).reversed() { rig.deliver(reply(to: rig.open[index].query, [found]), at: index) }
        for client in clients.dropFirst() { #expect(try rig.answer(of: client).code == .noError) }
        #expect(rig.answers[clients[0]] == nil)
        rig.deliver(reply(to: rig.open[0].query, [found]))
        #expect(try rig.answer(of: clients[0]).code == .noError)
    }

    @Test("D4: a status of HTTP that is none of success lets the next server be asked", arguments: [301, 404, 503])
    func httpStatus(status: Int) throws {
        var rig = try Rig(.servers(.https, .https))
        let client = try rig.ask(query("example.com", opt: opt())).client
        rig.fail(.httpStatus(status))
        #expect(rig.begun.map(\.upstream.index) == [0, 1])
        rig.fail(.httpStatus(status))
        #expect(try rig.answer(of: client).error == .networkError)
    }

    @Test("A server that finds signatures wrong is believed: no other is asked")
    func bogus() throws {
        var rig = try Rig(.servers(.udp, .udp))
        let (client, sent) = try rig.forward(query("example.com", opt: opt()))
        rig.deliver(reply(to: sent, flags: 0x8182, additional: [opt(option(15, [0, 6]))]))
        #expect(try rig.answer(of: client).error == .dnssecBogus)
        #expect(rig.begun.count == 1)
    }

    @Test("A server that does not know EDNS is asked without")
    func withoutEDNS() throws {
        var rig = try Rig()
        let (client, sent) = try rig.forward(query("example.com", opt: opt()))
        #expect(sent[11] == 1)
        rig.deliver(Array(sent[..<2]) + [0x81, 0x81] + [UInt8](repeating: 0, count: 8))
        let again = try #require(rig.open.last?.query)
        #expect(again[11] == 0)
        rig.deliver(reply(to: again, [found]))
        #expect(try rig.answer(of: client).hasOPT)
    }

    @Test("Split routes: the longest domain counts, for every type, and no failure leads to another group")
    func routes() throws {
        let configuration = DNSProxyConfiguration(
            upstreams: DNSProxyConfiguration.servers(.udp, .udp, .udp).upstreams,
            routes: [
                DomainRoute(domains: [try DomainName(parsing: "fritz.box")], upstreams: [UpstreamID(index: 1)]),
                DomainRoute(domains: [try DomainName(parsing: "lab.fritz.box")], upstreams: [UpstreamID(index: 2)]),
            ])
        #expect(configuration.defaultUpstreams == [UpstreamID(index: 0)])
        var rig = try Rig(configuration)
        let expected: [(String, RecordType, Int)] = [
            ("fritz.box", .ds, 1), ("FRITZ.box", .ns, 1), ("a.b.fritz.box", .a, 1), ("lab.fritz.box", .a, 2),
            ("x.lab.fritz.box", .https, 2), ("", .ns, 0), ("box", .ns, 0), ("notfritz.box", .a, 0),
        ]
        for (name, type, server) in expected {
            let begun = rig.begun.count
            let client = try rig.ask(query(name, type, opt: opt())).client
            if name.hasPrefix("x") { rig.fail(.unreachable) } else { rig.pass(.seconds(5)) }
            #expect(rig.begun[begun...].allSatisfy { $0.upstream.index == server })
            #expect(try rig.answer(of: client).code == .serverFailure)
        }
    }

    @Test("C9: a client that goes away gets nothing; the answer is kept for the next")
    func clientLeaves() throws {
        var rig = try Rig()
        let client = try rig.ask(query("example.com")).client
        rig.provider.clientLeft(ClientToken(rawValue: client))
        rig.deliver(reply(to: rig.open[0].query, [found]))
        #expect(rig.answers.isEmpty)
        #expect(try rig.ask(query("example.com")).answer.data(.a).count == 1)
        let other = try rig.ask(query("other.example")).client
        rig.provider.clientLeft(ClientToken(rawValue: other))
        rig.pass(.seconds(5))
        #expect(rig.open.isEmpty && rig.provider.status(at: rig.now).lookups == 0)
    }

    @Test("More queries than may wait are told so at once")
    func overload() throws {
        var rig = try Rig(.plain.with { ($0.maximumLookups, $0.maximumWaiting) = (2, 3) })
        _ = try rig.ask(query("a.example")).client
        _ = try rig.ask(query("b.example")).client
        #expect(try rig.ask(query("c.example", opt: opt())).answer.error == .notReady)
        _ = try rig.ask(query("b.example")).client
        #expect(try rig.ask(query("b.example")).answer.code == .serverFailure)
        #expect(rig.provider.status(at: rig.now).counters.overloaded == 2)
    }
}
