import DNSMessage
import DNSProxy
import IPPacket
import Provider
import TestSupport
import Testing

@Suite("Local names, rules and blocked answers")
struct PolicyTests {
    @Test("G1: localhost is the machine itself; invalid and test do not exist")
    func loopback() throws {
        var rig = try Rig()
        for name in ["localhost", "LOCALHOST", "a.b.localhost"] {
            #expect(try rig.ask(query(name)).answer.data(.a) == [[127, 0, 0, 1]])
            #expect(try rig.ask(query(name, .aaaa)).answer.data(.aaaa) == [[UInt8](repeating: 0, count: 15) + [1]])
            let other = try rig.ask(query(name, .mx)).answer
            #expect(other.code == .noError && other.records.map(\.type) == [.soa])
        }
        for name in ["invalid", "x.invalid", "test", "x.test"] {
            #expect(try rig.ask(query(name)).answer.code == .nameError)
        }
        #expect(rig.begun.isEmpty)
    }

    @Test(
        "G2: onion, local, alt and home.arpa do not exist and are not forwarded; a route changes that for all but onion"
    )
    func specialNames() throws {
        let names = ["x.onion", "x.local", "x.alt", "x.home.arpa"]
        var rig = try Rig()
        for name in names { #expect(try rig.ask(query(name)).answer.code == .nameError) }
        #expect(rig.begun.isEmpty)
        var routed = try Rig(
            DNSProxyConfiguration(
                upstreams: DNSProxyConfiguration.servers(.udp, .udp).upstreams,
                routes: [
                    DomainRoute(
                        domains: ["onion", "local", "alt", "home.arpa"].map { try DomainName(parsing: $0) },
                        upstreams: [UpstreamID(index: 1)])
                ]))
        #expect(try routed.ask(query("x.onion")).answer.code == .nameError)
        for name in names.dropFirst() { _ = try routed.ask(query(name)).client }
        #expect(routed.begun.map(\.upstream.index) == [1, 1, 1])
    }

    @Test(
        "G3: the addresses of private networks have no names, unless a route says who knows them",
        arguments: [
            "1.2.3.10.in-addr.arpa", "10.in-addr.arpa", "1.1.16.172.in-addr.arpa", "1.1.31.172.in-addr.arpa",
            "5.1.168.192.in-addr.arpa", "1.0.0.127.in-addr.arpa", "1.1.254.169.in-addr.arpa", "1.2.0.192.in-addr.arpa",
            "1.100.51.198.in-addr.arpa", "1.113.0.203.in-addr.arpa", "1.1.64.100.in-addr.arpa",
            "1.1.127.100.in-addr.arpa", "255.255.255.255.in-addr.arpa", "1.0.d.f.ip6.arpa", "1.8.e.f.ip6.arpa",
            "1.9.e.f.ip6.arpa", "1.a.e.f.ip6.arpa", "1.b.e.f.ip6.arpa", "1.8.b.d.0.1.0.0.2.ip6.arpa",
            String(repeating: "0.", count: 32) + "ip6.arpa", "1." + String(repeating: "0.", count: 31) + "ip6.arpa",
        ])
    func privateReverseZones(name: String) throws {
        var rig = try Rig()
        let answer = try rig.ask(query(name, .ptr)).answer
        #expect(answer.code == .nameError && answer.records.map(\.type) == [.soa])
        #expect(rig.begun.isEmpty)
        var routed = try Rig(
            DNSProxyConfiguration(
                upstreams: DNSProxyConfiguration.servers(.udp, .udp).upstreams,
                routes: [DomainRoute(domains: [try DomainName(parsing: name)], upstreams: [UpstreamID(index: 1)])]))
        _ = try routed.ask(query(name, .ptr)).client
        #expect(routed.begun.first?.upstream.index == 1)
    }

    @Test(
        "G3: the addresses next to private networks are asked about",
        arguments: [
            "1.1.15.172.in-addr.arpa", "1.1.32.172.in-addr.arpa", "1.1.63.100.in-addr.arpa", "1.1.128.100.in-addr.arpa",
            "1.1.1.11.in-addr.arpa", "1.c.e.f.ip6.arpa", "2." + String(repeating: "0.", count: 31) + "ip6.arpa",
        ])
    func publicReverseZones(name: String) throws {
        var rig = try Rig()
        _ = try rig.ask(query(name, .ptr)).client
    }

    @Test("G4: addresses of single labels are not asked about unless that is wanted or routed")
    func singleLabels() throws {
        var rig = try Rig()
        #expect(try rig.ask(query("printer")).answer.code == .nameError)
        #expect(try rig.ask(query("printer", .aaaa)).answer.code == .nameError)
        var forwarding = try Rig(.plain.with { $0.forwardsSingleLabels = true })
        _ = try forwarding.ask(query("printer")).client
    }

    @Test("G5: browsers are told that names are filtered when there are rules")
    func canary() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^"))
        #expect(try rig.ask(query("use-application-dns.net")).answer.code == .nameError)
        var open = try Rig()
        _ = try open.ask(query("use-application-dns.net")).client
    }

    @Test("G6: there is nothing at resolver.arpa, whatever is asked", arguments: [1, 28, 64, 65] as [UInt16])
    func designation(type: UInt16) throws {
        var rig = try Rig()
        for name in ["resolver.arpa", "_dns.resolver.arpa"] {
            let answer = try rig.ask(query(name, RecordType(rawValue: type))).answer
            #expect(answer.code == .noError && answer.records.map(\.type) == [.soa])
        }
        #expect(rig.begun.isEmpty)
    }

    @Test(
        "G8: answers that lead to the inside are held back, in addresses and hints, unless routed or allowed",
        arguments: [
            "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.1.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
            "0.0.0.0",
            "::1", "::", "fd00::1", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1",
        ])
    func rebinding(text: String) throws {
        let address = try IPAddress(parsing: text)
        let data = address.octetsOfTest
        let type: RecordType = data.count == 4 ? .a : .aaaa
        let hint = record(
            .https, [0, 1, 0] + bytes(UInt16(data.count == 4 ? 4 : 6)) + bytes(UInt16(data.count)) + data)
        let configuration = DNSProxyConfiguration(
            upstreams: DNSProxyConfiguration.servers(.udp, .udp).upstreams,
            routes: [DomainRoute(domains: [try DomainName(parsing: "corp.example")], upstreams: [UpstreamID(index: 1)])]
        )
        var rig = try Rig(try configuration.with(rules: "@@||home.example^"))
        let held = try rig.resolve(query("www.example", type, opt: opt()), [record(type, data)])
        #expect(held.code == .noError && held.data(type).isEmpty && held.error == .blocked)
        #expect(try rig.ask(query("www.example", type)).answer.data(type).isEmpty)
        #expect(try rig.resolve(query("www.example", .https), [hint]).data(.https).isEmpty)
        #expect(try rig.resolve(query("www.corp.example", type), [record(type, data)]).data(type) == [data])
        #expect(try rig.resolve(query("www.home.example", type), [record(type, data)]).data(type) == [data])
    }

    @Test(
        "G8: documentation, benchmarking and public addresses are no inside",
        arguments: [
            "192.0.2.1", "198.18.0.1", "172.32.0.1", "100.128.0.1", "1.1.1.1", "2001:db8::1", "2606:4700::1111",
        ])
    func outside(text: String) throws {
        let data = try IPAddress(parsing: text).octetsOfTest
        let type: RecordType = data.count == 4 ? .a : .aaaa
        var rig = try Rig()
        #expect(try rig.resolve(query("www.example", type), [record(type, data)]).data(type) == [data])
    }

    @Test("H1: HTTPS records pass byte by byte, with several hints and unknown keys")
    func serviceBinding() throws {
        let data: [UInt8] =
            [0, 1, 0, 0, 1, 0, 3, 2, 0x68, 0x32, 0, 4, 0, 8, 192, 0, 2, 1, 192, 0, 2, 2, 0xFF, 0, 0, 3, 1, 2, 3]
        var rig = try Rig()
        #expect(try rig.resolve(query("www.example", .https), [record(.https, data)]).data(.https) == [data])
    }

    @Test("H2: a blocked name is blocked for SVCB and HTTPS, and their targets are held to the rules")
    func blockedServices() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^"))
        for type in [RecordType.svcb, .https] {
            let blocked = try rig.ask(query("x.ads.example", type)).answer
            #expect(blocked.code == .noError && blocked.records.map(\.type) == [.soa])
            for priority in [0, 1] as [UInt8] {
                let name = "w\(priority).example"
                let target = record(type, [0, priority] + wire("cdn.ads.example"))
                #expect(try rig.resolve(query(name, type), [target]).records.map(\.type) == [.soa])
            }
        }
    }

    @Test(
        "H5: parameters out of order, twice there or of a wrong length reach no client and are not kept",
        arguments: [
            [0, 1, 0, 0, 4, 0, 4, 192, 0, 2, 1, 0, 1, 0, 3, 2, 0x68, 0x32],
            [0, 1, 0, 0, 1, 0, 3, 2, 0x68, 0x32, 0, 1, 0, 3, 2, 0x68, 0x33],
            [0, 1, 0, 0, 4, 0, 3, 192, 0, 2], [0, 1, 0, 0, 1, 0, 2, 9, 0x68],
        ] as [[UInt8]])
    func badParameters(data: [UInt8]) throws {
        var rig = try Rig()
        let (client, sent) = try rig.forward(query("www.example", .https))
        #expect(rig.deliver(reply(to: sent, [record(.https, data)])) == .keepWaiting)
        rig.pass(.seconds(5))
        #expect(try rig.answer(of: client).code == .serverFailure)
    }

    @Test("I1, I3: a blocked address is one record of the configured TTL, with the client's letters and flags")
    func blockedAddress() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^", "||x.ads.example^").with { $0.blockedTimeToLive = 77 })
        let asked = query("X.Ads.Example", flags: 0x0110)
        let answer = try rig.ask(asked).answer
        #expect(
            answer.records == [.init(owner: "X.Ads.Example.", type: .a, ttl: 77, data: [0, 0, 0, 0], section: .answer)])
        #expect(answer.flags.rawValue == 0x8190)
        #expect(try rig.ask(query("ads.example", .aaaa)).answer.data(.aaaa) == [[UInt8](repeating: 0, count: 16)])
        #expect(rig.begun.isEmpty)
    }

    @Test("I2: a blocked name has nothing of other types; TTL and MINIMUM of the SOA record are the configured ones")
    func blockedOthers() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^").with { $0.blockedTimeToLive = 77 })
        for type in [RecordType.mx, .txt, .https, .any] {
            let answer = try rig.ask(query("ads.example", type)).answer
            #expect(answer.code == .noError && answer.records.map(\.type) == [.soa] && answer.ttls(.soa) == [77])
            #expect(answer.records[0].data.suffix(4) == [0, 0, 0, 77])
        }
    }

    @Test("Each kind of blocked answer is the same for all types", arguments: BlockedAnswer.allCases)
    func kinds(kind: BlockedAnswer) throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^").with { $0.blockedAnswer = kind })
        for type in [RecordType.a, .aaaa, .txt, .https] {
            let answer = try rig.ask(query("ads.example", type)).answer
            switch kind {
            case .zero:
                #expect(answer.code == .noError && answer.data(type).count == (type == .a || type == .aaaa ? 1 : 0))
            case .nxdomain: #expect(answer.code == .nameError && answer.records.map(\.type) == [.soa])
            case .nodata: #expect(answer.code == .noError && answer.records.map(\.type) == [.soa])
            case .refused: #expect(answer.code == .refused && answer.records.isEmpty)
            }
        }
    }

    @Test("Names of the greatest length get each kind of answer by UDP without EDNS", arguments: BlockedAnswer.allCases)
    func longestNames(kind: BlockedAnswer) throws {
        let labels = { (count: Int) in [String](repeating: "a", count: count).joined(separator: ".") + "." }
        let long = String(repeating: "b", count: 63) + "."
        var rig = try Rig(.plain.with(rules: "||ads^").with { $0.blockedAnswer = kind })
        for end in ["ads", "invalid", "localhost", "resolver.arpa", "1.0.d.f.ip6.arpa"] {
            let room = 254 - wire(end).count
            for name in [labels(room / 2) + end, long + long + long + labels((room - 192) / 2) + end] {
                #expect(wire(name).count >= 252)
                for type in [RecordType.a, .aaaa, .ptr, .any] {
                    #expect(try rig.ask(query(name, type)).answer.bytes.count <= 512)
                }
            }
        }
        #expect(rig.begun.isEmpty)
    }

    @Test("Rules hold for a name and what is below it, and nothing that only ends alike; what lets through wins")
    func rules() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^", "@@||good.ads.example^", "||bad.good.ads.example^"))
        for name in ["ads.example", "ADS.example", "a.b.ads.example"] {
            #expect(try rig.ask(query(name)).answer.data(.a) == [[0, 0, 0, 0]])
        }
        for name in ["badads.example", "example.com", "good.ads.example", "x.good.ads.example", "bad.good.ads.example"]
        {
            _ = try rig.ask(query(name)).client
        }
    }

    @Test("A rule that lets the question through lets through what its answer leads to")
    func allowedAliases() throws {
        var rig = try Rig(.plain.with(rules: "||b.example^", "@@||x.a.example^"))
        let answers = [record(.cname, wire("y.b.example")), record(.a, owner: "y.b.example", address(192, 0, 2, 1))]
        #expect(try rig.resolve(query("x.a.example"), answers).data(.a) == [[192, 0, 2, 1]])
        #expect(try rig.resolve(query("z.a.example"), answers).data(.a) == [[0, 0, 0, 0]])
        #expect(try rig.ask(query("z.a.example")).answer.data(.a) == [[0, 0, 0, 0]])
    }

    @Test(
        "What has not the form of a rule is refused",
        arguments: [
            "", "ads.example", "||ads.example", "ads.example^", "||^", "||.^", "@@ads.example^", "||*.ads.example^",
            "||a..b^",
            "||ads.example^$important", "|ads.example^", "||ads.example/x^", "||ads .example^",
        ])
    func malformedRules(text: String) {
        #expect(throws: NameRuleError.self) { try NameRule(parsing: text) }
    }
}

extension IPAddress {
    /// The octets of the address, for records.
    var octetsOfTest: [UInt8] {
        switch self {
        case .v4(let address): bytes(address.bits)
        case .v6(let address):
            bytes(UInt32(address.high >> 32)) + bytes(UInt32(truncatingIfNeeded: address.high))
                + bytes(UInt32(address.low >> 32)) + bytes(UInt32(truncatingIfNeeded: address.low))
        }
    }
}
