import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("EDNS, flags and DNSSEC")
struct EDNSTests {
    @Test("B1, B2: every kind of reply has an OPT record when the query had one, and none when it had not")
    func optWhenAsked() throws {
        for hasOPT in [true, false] {
            var rig = try Rig(.plain.with(rules: "||ads.example^"))
            let opt = hasOPT ? opt() : nil
            // NOERROR, whatever the server sent, and the same from the cache.
            let record = record(.a, address(192, 0, 2, 1))
            #expect(try rig.resolve(query("example.com", opt: opt), [record]).hasOPT == hasOPT)
            #expect(try rig.ask(query("example.com", opt: opt)).answer.hasOPT == hasOPT)
            // Blocked, local, refused.
            #expect(try rig.ask(query("ads.example", opt: opt)).answer.hasOPT == hasOPT)
            #expect(try rig.ask(query("localhost", opt: opt)).answer.hasOPT == hasOPT)
            #expect(try rig.ask(query("x.example", .axfr, opt: opt)).answer.hasOPT == hasOPT)
            // SERVFAIL.
            let client = try rig.ask(query("fail.example", opt: opt)).client
            rig.fail(.unreachable)
            #expect(try rig.answer(of: client).hasOPT == hasOPT)
            // Truncated.
            let texts = (0..<20).map { _ in DNSProxyTests.record(.txt, [200] + [UInt8](repeating: 65, count: 200)) }
            let cut = try rig.resolve(query("long.example", .txt, opt: opt), texts)
            #expect(cut.flags.contains(.truncated) && cut.hasOPT == hasOPT)
        }
    }

    @Test("B3: another version of EDNS is BADVERS with version 0 and no answer")
    func version() throws {
        var rig = try Rig()
        let answer = try rig.ask(query("example.com", opt: opt(version: 1))).answer
        #expect(answer.code == .badVersion && answer.records.isEmpty)
        #expect(rig.begun.isEmpty)
    }

    @Test("B4, B6: a second OPT record, one with an owner, and one with an option too long are FORMERR")
    func malformedOPT() throws {
        var rig = try Rig()
        var twice = query("example.com", opt: opt() + opt())
        twice[11] = 2
        let named = query("example.com", opt: [1, 0x61] + opt())
        let overrun = query("example.com", opt: opt([0, 8, 0, 200, 1]))
        for asked in [twice, named, overrun] { #expect(try rig.ask(asked).answer.code == .formatError) }
        #expect(rig.begun.isEmpty)
    }

    @Test(
        "B5, B7: options of the client go nowhere: neither back nor on to the server, and those of the server not to the client"
    )
    func optionsEndHere() throws {
        var rig = try Rig(.servers(.udp))
        let options =
            option(3) + option(8, [0, 1, 24, 0, 192, 0, 2]) + option(10, [UInt8](repeating: 9, count: 8))
            + option(11) + option(12, [0, 0, 0, 0]) + option(100, [1, 2, 3])
        let (client, sent) = try rig.forward(query("example.com", opt: opt(options)))
        #expect(Array(sent.suffix(11)) == opt())
        let serverOPT = opt(option(10, [UInt8](repeating: 7, count: 16)) + option(65_001, [1]))
        rig.deliver(reply(to: sent, [record(.a, address(192, 0, 2, 1))], additional: [serverOPT]))
        #expect(Array(try rig.answer(of: client).bytes.suffix(11)) == opt())
        #expect(Array(try rig.ask(query("example.com", opt: opt(options))).answer.bytes.suffix(11)) == opt())
    }

    @Test(
        "B8, B9: a reply by UDP fits the client's size and our own cap; whole RRsets go, TC is set, from the cache too")
    func sizes() throws {
        var rig = try Rig()
        let asked = { (size: UInt16?) in query("long.example", .txt, opt: size.map { opt(size: $0) }) }
        let texts = (0..<2).map { _ in record(.txt, [200] + [UInt8](repeating: 65, count: 200)) }
        let extra = (0..<6).map { record(.a, owner: "a\($0).example", [192, 0, 2, $0]) }
        let more = [record(.txt, owner: "b.example", [250] + [UInt8](repeating: 66, count: 250))]
        var sizes: [UInt16?] = [nil, 0, 511, 512, 513, 700, 900, 1231, 1232, 4096, 65_535]
        try rig.resolve(asked(nil), texts, additional: extra + more + more)
        while !sizes.isEmpty {
            let size = sizes.removeFirst()
            let answer = try rig.ask(asked(size)).answer
            let limit = min(1232, max(512, Int(size ?? 512)))
            #expect(answer.bytes.count <= limit)
            #expect(answer.flags.contains(.truncated) == (answer.records.count < 10))
            #expect([0, 2].contains(answer.data(.txt).count))
        }
    }

    @Test("B10: a reply by TCP is never cut")
    func neverCutByTCP() throws {
        var rig = try Rig(.servers(.tcp))
        let texts = (0..<100).map { _ in record(.txt, [200] + [UInt8](repeating: 65, count: 200)) }
        let answer = try rig.resolve(query("long.example", .txt, opt: opt(size: 512)), by: .tcp, texts)
        #expect(answer.data(.txt).count == 100 && !answer.flags.contains(.truncated))
        #expect(try rig.ask(query("long.example", .txt), by: .tcp).answer.data(.txt).count == 100)
        #expect(try rig.ask(query("long.example", .txt), by: .udp).answer.flags.contains(.truncated))
    }

    @Test("B11: TC by UDP is asked again by TCP, and never kept")
    func truncatedUpstream() throws {
        var rig = try Rig()
        let (client, sent) = try rig.forward(query("example.com", .txt))
        #expect(rig.deliver(reply(to: sent, flags: 0x8380)) == .finished)
        #expect(rig.begun.map(\.transport) == [.udp, .tcp])
        #expect(rig.begun.map(\.upstream) == [UpstreamID(index: 0), UpstreamID(index: 0)])
        let text = record(.txt, ttl: 60, [1, 65])
        rig.deliver(reply(to: try #require(rig.open.last?.query), [text]))
        #expect(try rig.answer(of: client).data(.txt) == [[1, 65]])
        #expect(try rig.ask(query("example.com", .txt)).answer.data(.txt) == [[1, 65]])
        // TC by TCP is no answer.
        let other = try rig.forward(query("other.example", .txt))
        rig.deliver(reply(to: other.sent, flags: 0x8380))
        for _ in 0..<2 { rig.deliver(reply(to: try #require(rig.open.last?.query), flags: 0x8380, [text])) }
        #expect(try rig.answer(of: other.client).code == .serverFailure)
    }

    @Test("B12: an answer that fits is not asked for again by TCP")
    func noNeedlessTCP() throws {
        var rig = try Rig()
        try rig.resolve(query("example.com"), [record(.a, address(192, 0, 2, 1))])
        #expect(rig.begun.map(\.transport) == [.udp])
    }

    @Test("B13: signatures go to those who set DO, byte by byte, or ask for the type; aliases go to all")
    func signatures() throws {
        var rig = try Rig()
        let alias = record(.cname, [1, 0x62, 0])
        let signature = record(
            .rrsig, bytes(RecordType.cname.rawValue) + [8, 2] + [UInt8](repeating: 5, count: 14) + [0, 1, 2, 3])
        let address = record(.a, owner: "b", address(192, 0, 2, 1))
        let answers = [alias, signature, address]
        let plain = try rig.resolve(query("example.com"), answers)
        #expect(plain.records.map(\.type) == [.cname, .a])
        let signed = try rig.resolve(query("example.com", opt: opt(dnssecOK: true)), answers)
        #expect(signed.records.map(\.type) == [.cname, .rrsig, .a])
        #expect(signed.data(.rrsig) == [Array(signature[12...])])
        #expect(signed.dnssecOK)
        let asked = try rig.resolve(query("other.example", .rrsig), [signature])
        #expect(asked.records.map(\.type) == [.rrsig])
        // The server was told of DO by the one alone.
        #expect(rig.begun.count == 3)
    }

    @Test("B14: AD is passed on from servers that are trusted for it, to clients that set AD or DO, from the cache too")
    func authenticData() throws {
        for isTrusted in [true, false] {
            var rig = try Rig(.servers(.udp, trusted: isTrusted))
            let (first, sent) = try rig.forward(query("example.com", flags: 0x0120))
            #expect((sent[3] & 0x20 != 0) == isTrusted)
            rig.deliver(reply(to: sent, flags: 0x81A0, [record(.a, address(192, 0, 2, 1))]))
            #expect(try rig.answer(of: first).flags.contains(.authenticData) == isTrusted)
            #expect(try rig.ask(query("example.com", flags: 0x0120)).answer.flags.contains(.authenticData) == isTrusted)
            #expect(try !rig.ask(query("example.com", flags: 0x0100)).answer.flags.contains(.authenticData))
            #expect(try !rig.ask(query("example.com", opt: opt())).answer.flags.contains(.authenticData))
        }
    }

    @Test("B15: CD is copied to the server and to the reply, and its answers are never given to those without it")
    func checkingDisabled() throws {
        var rig = try Rig()
        let (client, sent) = try rig.forward(query("example.com", flags: 0x0110))
        #expect(sent[3] & 0x10 != 0)
        rig.deliver(reply(to: sent, flags: 0x8190, [record(.a, address(192, 0, 2, 1))]))
        #expect(try rig.answer(of: client).flags.contains(.checkingDisabled))
        #expect(try rig.ask(query("example.com", flags: 0x0110)).answer.flags.contains(.checkingDisabled))
        let other = try rig.forward(query("example.com"))
        #expect(other.sent[3] & 0x10 == 0)
        rig.deliver(reply(to: other.sent, [record(.a, address(192, 0, 2, 2))]))
        #expect(try rig.answer(of: other.client).data(.a) == [[192, 0, 2, 2]])
    }

    @Test("B18: failures and blocked names say why, to clients with EDNS")
    func extendedErrors() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^"))
        #expect(try rig.ask(query("ads.example", opt: opt())).answer.error == .blocked)
        let reasons: [(ExchangeFailure, ExtendedErrorCode)] = [
            (.unreachable, .noReachableAuthority), (.untrusted, .networkError), (.httpStatus(500), .networkError),
        ]
        for (index, (failure, code)) in reasons.enumerated() {
            let client = try rig.ask(query("x\(index).example", opt: opt())).client
            rig.fail(failure)
            let answer = try rig.answer(of: client)
            #expect(answer.code == .serverFailure && answer.error == code)
        }
    }

    @Test("B19: a client subnet that is not in order is FORMERR")
    func clientSubnets() throws {
        var rig = try Rig()
        for value in [
            [0, 3, 8, 0, 1], [0, 1, 24, 0, 192, 0, 2, 1], [0, 1, 23, 0, 192, 0, 3], [0, 1, 24, 24, 192, 0, 2],
        ]
            as [[UInt8]]
        {
            #expect(try rig.ask(query("example.com", opt: opt(option(8, value)))).answer.code == .formatError)
        }
    }

    @Test("C8: the time that a connection may be idle is told by TCP to those who ask, never by UDP")
    func keepalive() throws {
        var rig = try Rig(.plain.with { $0.clientIdle = .seconds(12) })
        let record = record(.a, address(192, 0, 2, 1))
        try rig.resolve(query("example.com"), [record])
        let asked = query("example.com", opt: opt(option(11)))
        #expect(try rig.ask(asked, by: .tcp).answer.keepalive == .timeout(tenthsOfSecond: 120))
        #expect(try rig.ask(asked, by: .udp).answer.keepalive == nil)
        #expect(try rig.ask(query("example.com", opt: opt()), by: .tcp).answer.keepalive == nil)
        // Also those who have to wait for their answer.
        let waited = try rig.resolve(query("example.net", opt: opt(option(11))), by: .tcp, [record])
        #expect(waited.keepalive == .timeout(tenthsOfSecond: 120))
    }

    @Test(
        "D11: answers by TLS and HTTPS are padded to 468 bytes for who pads; how long a connection lives is for TCP and TLS"
    )
    func paddedAnswers() throws {
        for transport in [ClientTransport.udp, .tcp, .tls, .https] {
            var rig = try Rig(.plain.with(rules: "||ads.example^"))
            let options = option(12, [0, 0, 0, 0]) + option(11)
            let waited = try rig.resolve(
                query("example.com", opt: opt(options)), by: transport, [record(.a, address(192, 0, 2, 1))])
            var answers = [waited]
            for name in ["example.com", "ads.example", "localhost", "x.invalid"] {
                answers.append(try rig.ask(query(name, opt: opt(options)), by: transport).answer)
                let plain = try rig.ask(query(name, opt: opt()), by: transport).answer
                #expect(plain.bytes.count < 200 && plain.keepalive == nil)
            }
            for answer in answers {
                let isEncrypted = transport == .tls || transport == .https
                #expect(isEncrypted ? answer.bytes.count == 468 : answer.bytes.count < 200)
                #expect((answer.keepalive != nil) == (transport == .tcp || transport == .tls))
            }
        }
    }
}
