import ByteAccess
import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("Client subnets that are passed on (RFC 7871)")
struct ClientSubnetTests {
    /// An option for 198.51.X.0/24 or so: source and scope in bits, and the address's first bytes.
    private func subnet(_ address: UInt8..., source: UInt8 = 24, scope: UInt8 = 0) -> [UInt8] {
        option(8, [0, address.count > 4 ? 2 : 1, source, scope] + address)
    }

    private func asked(_ option: [UInt8], _ name: String = "www.example") -> [UInt8] {
        query(name, opt: opt(option))
    }

    private func rig() throws -> Rig { try Rig(.plain.with { $0.passesClientSubnet = true }) }

    private func replied(_ rig: inout Rig, _ query: [UInt8], _ last: UInt8, _ option: [UInt8]?) throws -> Answer {
        let (client, sent) = try rig.forward(query)
        let records = [record(.a, address(192, 0, 2, last))]
        rig.deliver(reply(to: sent, records, additional: [opt(option ?? [])]))
        return try rig.answer(of: client)
    }

    /// The options of an answer, whose OPT record is its end.
    private func options(_ answer: Answer) throws -> [UInt8] {
        let view = try DNSMessageView(checking: answer.bytes.span.octets)
        guard let edns = view.edns else { throw Absent() }
        return Array(edns.optionBytes)
    }

    @Test("B19: unless it is said otherwise nothing of it goes anywhere")
    func removed() throws {
        var rig = try Rig()
        let (client, sent) = try rig.forward(asked(subnet(198, 51, 100)))
        #expect(Array(sent.suffix(11)) == opt())
        // A server that answers with one all the same is not believed to have made the answer for it.
        let records = [record(.a, address(192, 0, 2, 1))]
        rig.deliver(reply(to: sent, records, additional: [opt(subnet(198, 51, 100, scope: 24))]))
        #expect(try options(rig.answer(of: client)).isEmpty)
        #expect(try options(rig.ask(asked(subnet(203, 0, 113))).answer).isEmpty)
    }

    @Test("B19: the option reaches the server, and its answer the client, with the scope")
    func passed() throws {
        var rig = try rig()
        let option = subnet(198, 51, 100)
        let (client, sent) = try rig.forward(asked(option))
        #expect(Array(sent.suffix(11 + option.count)) == opt(option))
        let records = [record(.a, address(192, 0, 2, 1))]
        rig.deliver(reply(to: sent, records, additional: [opt(subnet(198, 51, 100, scope: 20))]))
        #expect(try options(rig.answer(of: client)) == subnet(198, 51, 100, scope: 20))
        // Who tells nothing gets nothing, and its question is asked without.
        let (_, plain) = try rig.forward(query("www.example", opt: opt()))
        #expect(Array(plain.suffix(11)) == opt())
    }

    @Test("B19: an answer is for the network of its scope, and for no other")
    func scopes() throws {
        var rig = try rig()
        _ = try replied(&rig, asked(subnet(198, 51, 100)), 1, subnet(198, 51, 100, scope: 20))
        let near = try rig.ask(asked(subnet(198, 51, 111))).answer
        #expect(near.data(.a) == [[192, 0, 2, 1]])
        #expect(try options(near) == subnet(198, 51, 111, scope: 20))
        // Another network, one that tells too little to be known as the same, and who tells nothing.
        #expect(try replied(&rig, asked(subnet(198, 51, 112)), 2, subnet(198, 51, 112, scope: 24)).data(.a)[0][3] == 2)
        let wide = subnet(198, 51, source: 16)
        #expect(try replied(&rig, asked(wide), 3, subnet(198, 51, source: 16, scope: 16)).data(.a)[0][3] == 3)
        #expect(try rig.resolve(query("www.example"), [record(.a, address(192, 0, 2, 4))]).data(.a)[0][3] == 4)
        // All are kept beside each other, and of those that hold the longest counts.
        #expect(try rig.ask(asked(subnet(198, 51, 96))).answer.data(.a)[0][3] == 1)
        #expect(try rig.ask(asked(subnet(198, 51, 112))).answer.data(.a)[0][3] == 2)
        #expect(try rig.ask(asked(subnet(198, 51, 200))).answer.data(.a)[0][3] == 3)
        #expect(try rig.ask(query("www.example")).answer.data(.a)[0][3] == 4)
        #expect(rig.begun.count == 4)
    }

    @Test("B19: scope 0, and no option at all, is an answer for all", arguments: [true, false])
    func forAll(hasOption: Bool) throws {
        var rig = try rig()
        let answer = try replied(&rig, asked(subnet(198, 51, 100)), 1, hasOption ? subnet(198, 51, 100) : nil)
        #expect(try options(answer) == subnet(198, 51, 100))
        let other = subnet(0x20, 1, 0xD, 0xB8, 0, 1, 0, source: 56)
        let six = try rig.ask(asked(other)).answer
        #expect(try options(six) == other && six.data(.a)[0][3] == 1)
        #expect(try rig.ask(query("www.example")).answer.data(.a)[0][3] == 1)
        #expect(rig.begun.count == 1)
    }

    @Test("B19: what servers say without being told a network is not for those that tell one")
    func plainFirst() throws {
        var rig = try rig()
        try rig.resolve(query("www.example"), [record(.a, address(192, 0, 2, 4))])
        #expect(try replied(&rig, asked(subnet(198, 51, 100)), 1, subnet(198, 51, 100, scope: 24)).data(.a)[0][3] == 1)
        // What was for all is so no longer when it is replaced.
        _ = try replied(&rig, asked(subnet(198, 51, 100), "x.example"), 1, subnet(198, 51, 100))
        rig.pass(.seconds(300))
        try rig.resolve(query("x.example"), [record(.a, address(192, 0, 2, 4))])
        _ = try rig.forward(asked(subnet(198, 51, 100), "x.example"))
    }

    @Test("B19: a client that wants nothing told is not given away, and its answer is for its like alone")
    func anonymous() throws {
        var rig = try rig()
        let none = subnet(source: 0)
        let (client, sent) = try rig.forward(asked(none))
        #expect(Array(sent.suffix(11 + none.count)) == opt(none))
        rig.deliver(reply(to: sent, [record(.a, address(192, 0, 2, 9))], additional: [opt(none)]))
        #expect(try options(rig.answer(of: client)) == none)
        #expect(try rig.ask(asked(none)).answer.data(.a)[0][3] == 9)
        #expect(try replied(&rig, asked(subnet(198, 51, 100)), 1, subnet(198, 51, 100)).data(.a)[0][3] == 1)
        // Nor does what is for all networks replace what is for none.
        #expect(try rig.ask(asked(none)).answer.data(.a)[0][3] == 9)
        #expect(rig.begun.count == 2)
    }

    @Test("B19: when the server would like to know more, the answer is for who tells as much")
    func longerScope() throws {
        var rig = try rig()
        let wide = subnet(198, 51, source: 16)
        #expect(
            try options(replied(&rig, asked(wide), 1, subnet(198, 51, source: 16, scope: 24)))
                == subnet(198, 51, source: 16, scope: 24))
        #expect(try rig.ask(asked(wide)).answer.data(.a)[0][3] == 1)
        #expect(try replied(&rig, asked(subnet(198, 51, 100)), 2, subnet(198, 51, 100, scope: 24)).data(.a)[0][3] == 2)
    }

    @Test("B19: an answer about another network is none")
    func otherNetwork() throws {
        var rig = try rig()
        let (client, sent) = try rig.forward(asked(subnet(198, 51, 100)))
        let records = [record(.a, address(192, 0, 2, 1))]
        for wrong in [subnet(198, 51, 101, scope: 24), subnet(198, 51, source: 16, scope: 16), option(8, [0, 1])] {
            #expect(rig.deliver(reply(to: sent, records, additional: [opt(wrong)])) == .keepWaiting)
        }
        rig.deliver(reply(to: sent, records, additional: [opt(subnet(198, 51, 100, scope: 24))]))
        #expect(try rig.answer(of: client).data(.a)[0][3] == 1)
    }

    @Test("B19, A14: those of one network wait for one answer, others for their own")
    func merged() throws {
        var rig = try rig()
        for network in [100, 100, 101] as [UInt8] { _ = try rig.ask(asked(subnet(198, 51, network))).client }
        _ = try rig.ask(query("www.example")).client
        #expect(rig.begun.count == 3)
        rig.deliver(
            reply(
                to: rig.open[0].query, [record(.a, address(192, 0, 2, 1))],
                additional: [opt(subnet(198, 51, 100, scope: 24))]),
            at: 0)
        #expect(rig.answers.keys.sorted() == [1, 2])
    }

    @Test("B19: local answers, blocked ones and failures have the option too, for all networks")
    func ownAnswers() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^").with { $0.passesClientSubnet = true })
        let option = subnet(198, 51, 100)
        #expect(try options(rig.ask(asked(option, "localhost")).answer) == option)
        #expect(try options(rig.ask(asked(option, "ads.example")).answer).suffix(option.count) == option[...])
        let client = try rig.ask(asked(option, "fails.example")).client
        rig.fail(.unreachable)
        rig.fail(.unreachable)
        let failure = try rig.answer(of: client)
        #expect(failure.code == .serverFailure)
        #expect(try options(failure).suffix(option.count) == option[...])
        // The failure is that of this network.
        #expect(try rig.ask(asked(option, "fails.example")).answer.error == .cachedError)
        _ = try rig.ask(query("fails.example")).client
    }

    @Test("B19: what is kept for networks is bounded")
    func bounded() throws {
        var rig = try rig()
        for network in 0..<9 as Range<UInt8> {
            _ = try replied(&rig, asked(subnet(198, 51, network)), network, subnet(198, 51, network, scope: 24))
        }
        for network in 1..<9 as Range<UInt8> {
            #expect(try rig.ask(asked(subnet(198, 51, network))).answer.data(.a)[0][3] == network)
        }
        #expect(rig.provider.status(at: rig.now).cachedAnswers == 8)
        _ = try rig.forward(asked(subnet(198, 51, 0)))
        // Names that come later push out the first.
        for number in 0..<512 {
            _ = try replied(&rig, asked(subnet(198, 51, 1), "n\(number).example"), 1, subnet(198, 51, 1, scope: 24))
        }
        _ = try rig.forward(asked(subnet(198, 51, 5)))
        #expect(try rig.ask(asked(subnet(198, 51, 1), "n511.example")).answer.data(.a)[0][3] == 1)
    }

    @Test("B19: a reload that passes it on no longer is followed at once")
    func reload() throws {
        var rig = try rig()
        _ = try replied(&rig, asked(subnet(198, 51, 100)), 1, subnet(198, 51, 100, scope: 24))
        try rig.provider.reload(.plain, at: rig.now)
        let (_, sent) = try rig.forward(asked(subnet(198, 51, 100)))
        #expect(Array(sent.suffix(11)) == opt())
    }
}
