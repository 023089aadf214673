import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("Header, question and opcode")
struct HeaderTests {
    @Test(
        "A1: a reply has the query's ID, opcode, RD and question with its letters; QR and RA are set, AA and Z are not")
    func repeatsTheQuery() throws {
        var rig = try Rig()
        for flags: UInt16 in [0x0100, 0x0000] {
            let asked = query("wWw.ExAmple.Com", id: 0x1234, flags: flags)
            let (client, sent) = try rig.forward(asked)
            // AA and Z are set on purpose.
            rig.deliver(reply(to: sent, flags: 0x85C0, [record(.a, ttl: 0, address(192, 0, 2, 1))]))
            let answer = try rig.answer(of: client)
            #expect(answer.id == 0x1234)
            #expect(answer.question == Array(asked[12...]))
            #expect(answer.flags.rawValue == 0x8080 | flags)
        }
    }

    @Test("A2: what has QR set is dropped")
    func dropsAnswers() throws {
        var rig = try Rig()
        #expect(rig.ask(query("example.com", flags: 0x8180)) == .drop(.notAQuery))
        #expect(rig.begun.isEmpty)
    }

    @Test("A3, A4: two questions or none are FORMERR, and nobody is asked", arguments: [0, 2] as [UInt8])
    func questionCount(count: UInt8) throws {
        var rig = try Rig()
        var asked = query("example.com")
        asked[5] = count
        if count == 2 { asked += asked[12...] } else { asked = Array(asked[..<12]) }
        let answer = try rig.ask(asked).answer
        #expect(answer.code == .formatError)
        #expect(answer.id == 0xABCD)
        #expect(rig.begun.isEmpty)
    }

    @Test("A5: other opcodes are NOTIMP with the opcode repeated", arguments: [1, 2, 3, 4, 5, 6, 15] as [UInt8])
    func opcodes(opcode: UInt8) throws {
        var rig = try Rig()
        let answer = try rig.ask(query("example.com", flags: UInt16(opcode) << 11)).answer
        #expect(answer.code == .notImplemented)
        #expect(answer.flags.opcode.rawValue == opcode)
        #expect(answer.records.isEmpty)
    }

    @Test("A6: less than a header is dropped, a header with a bad body is FORMERR with its ID")
    func cutQueries() throws {
        var rig = try Rig()
        let whole = query("example.com", opt: opt())
        for length in 0..<whole.count {
            let outcome = rig.ask(Array(whole[..<length]))
            guard length >= 12 else {
                #expect(outcome == .drop(.noHeader))
                continue
            }
            let answer = try outcome.answer
            #expect(answer.code == .formatError && answer.id == 0xABCD)
        }
        #expect(rig.begun.isEmpty)
    }

    @Test("A7: other classes are refused and not forwarded", arguments: [3, 4, 255] as [UInt16])
    func classes(recordClass: UInt16) throws {
        var rig = try Rig()
        #expect(try rig.ask(query("version.bind", .txt, recordClass: recordClass)).answer.code == .refused)
        #expect(rig.begun.isEmpty)
    }

    @Test("A8: an unknown type is forwarded and answered byte by byte")
    func unknownType() throws {
        var rig = try Rig()
        let data: [UInt8] = [0xC0, 0x0C, 0xFF, 0x00, 0x3F]
        let type = RecordType(rawValue: 65_400)
        let answer = try rig.resolve(query("example.com", type), [record(type, data)])
        #expect(answer.data(type) == [data])
    }

    @Test("A9: ANY by UDP gets one HINFO record, by TCP it is forwarded")
    func any() throws {
        var rig = try Rig()
        let answer = try rig.ask(query("example.com", .any)).answer
        #expect(answer.records.map(\.type) == [.hinfo])
        #expect(try rig.forward(query("example.com", .any), by: .tcp).sent.isEmpty == false)
    }

    @Test("A10: types that no zone holds are not forwarded", arguments: [41, 249, 250, 251, 252, 253, 254] as [UInt16])
    func metaTypes(type: UInt16) throws {
        var rig = try Rig()
        let code = try rig.ask(query("example.com", RecordType(rawValue: type))).answer.code
        #expect(code == .refused || code == .notImplemented)
        #expect(rig.begun.isEmpty)
    }

    @Test("A12: the root and names of one label take the default route")
    func rootAndSingleLabels() throws {
        var rig = try Rig(
            DNSProxyConfiguration(
                upstreams: DNSProxyConfiguration.servers(.udp, .udp).upstreams,
                routes: [DomainRoute(domains: [DomainName(parsing: "fritz.box")], upstreams: [UpstreamID(index: 1)])]))
        for (name, type) in [("", RecordType.ns), ("com", .ns), ("com", .ds), ("com", .soa)] {
            let answer = try rig.resolve(query(name, type), authority: [soa("x", ttl: 60, minimum: 60)])
            #expect(answer.code == .noError)
            #expect(rig.begun.last?.upstream == UpstreamID(index: 0))
        }
    }

    @Test("A13: labels of any octets are forwarded as they are")
    func anyOctets() throws {
        var rig = try Rig()
        let name: [UInt8] = [5, 0x00, 0x2E, 0x80, 0x20, 0x5F, 3, 0x41, 0xFF, 0x5C, 0]
        let asked = Array(query("")[..<12]) + name + [0, 1, 0, 1]
        let (client, sent) = try rig.forward(asked)
        #expect(Array(sent[12..<12 + name.count]) == name)
        rig.deliver(reply(to: sent, [record(.a, address(192, 0, 2, 1))]))
        #expect(try rig.answer(of: client).question == name + [0, 1, 0, 1])
    }

    @Test("A14: equal queries under way are one query to the server; each client gets its own ID, letters and EDNS")
    func mergesQueries() throws {
        var rig = try Rig()
        let spellings = ["example.com", "EXAMPLE.com", "eXaMpLe.CoM"]
        let clients = try (0..<200).map { number in
            let asked = query(spellings[number % 3], id: UInt16(number), opt: number % 2 == 0 ? nil : opt())
            return (asked, try rig.ask(asked).client)
        }
        #expect(rig.begun.count == 1)
        rig.deliver(reply(to: rig.open[0].query, [record(.a, address(192, 0, 2, 1))]))
        for (number, (asked, client)) in clients.enumerated() {
            let answer = try rig.answer(of: client)
            #expect(answer.id == UInt16(number))
            #expect(answer.question == Array(asked[12..<12 + answer.question.count]))
            #expect(answer.hasOPT == (number % 2 == 1))
        }
    }

    @Test("A15: a proxy that is its own upstream ends within the deadline")
    func loop() throws {
        var rig = try Rig()
        let client = try rig.ask(query("example.com")).client
        var rounds = 0
        for _ in 0..<60 {
            // Whatever is sent comes back as a query.
            for index in rig.begun.indices.dropFirst(rounds) {
                rounds = index + 1
                if let sent = rig.open.last?.query { rig.ask(sent) }
            }
            rig.pass(.milliseconds(100))
        }
        #expect(try rig.answer(of: client).code == .serverFailure)
        #expect(rig.begun.count < 10)
        #expect(rig.provider.status(at: rig.now).waiting == 0)
    }
}
