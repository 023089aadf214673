import ByteAccess
import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("Hosts files")
struct HostNamesTests {
    private func names(_ text: String, own: String? = nil) throws -> HostNames {
        var names = HostNames(ownName: try own.map { try DomainName(parsing: $0) })
        names.add(contentsOf: Array(text.utf8).span.octets)
        return names
    }

    @Test("I4: lines end in LF, CR or both, blanks are of any kind, and what makes no sense is counted")
    func lines() throws {
        let text =
            "\u{FEFF}192.0.2.1\ta.example\u{B}b.example\r192.0.2.2 c.example#x\r\n\r\n \t\n# 192.0.2.3 d\n::2 e.example"
        #expect(try names(text).counts == HostNames.Counts(4, 0, 0))
        for junk in [
            "x", "192.0.2.1", "192.0.2.1 #a", "1.2.3 a.example", "192.0.2.1 a..b", "0.0.0.0 0.0.0.0", "0.0.0.0 com",
        ] {
            #expect(try names(junk).counts == HostNames.Counts(0, 0, 1))
        }
        #expect(try names("192.0.2.1 a.example A.Example.\n192.0.2.1 a.example").counts == HostNames.Counts(1, 0, 0))
    }

    @Test("I4: the machine's own names at 127.0.0.1 are no block, those of others are")
    func loopback() throws {
        let own = "127.0.0.1 localhost box.example.net box x.localhost build.test y.internal\n::1 BOX"
        #expect(try names(own, own: "box").counts == HostNames.Counts(5, 0, 0))
        #expect(try names(own, own: "Box.other.example").counts == HostNames.Counts(5, 0, 0))
        #expect(try names(own).counts == HostNames.Counts(4, 1, 0))
        #expect(try names("127.0.1.1 a.example\n127.0.0.1 a.example").counts == HostNames.Counts(1, 1, 0))
    }

    @Test("I4: names have all their addresses, and nothing of other families; addresses have the first name")
    func answers() throws {
        var rig = try Rig()
        rig.provider.setHosts(try names("192.0.2.1 a.example b\n192.0.2.2 a.example\n0.0.0.0 ads.example\n"))
        let both = try rig.ask(query("A.example")).answer
        #expect(
            both.data(.a) == [[192, 0, 2, 1], [192, 0, 2, 2]]
                && both.records.map(\.owner) == ["A.example.", "A.example."])
        for type in [RecordType.aaaa, .https, .svcb, .ptr] {
            #expect(try rig.ask(query("a.example", type)).answer.records.map(\.type) == [.soa])
        }
        #expect(try rig.ask(query("1.2.0.192.in-addr.arpa", .ptr)).answer.data(.ptr) == [wire("a.example")])
        #expect(try rig.ask(query("ads.example", .aaaa, opt: opt())).answer.error == .blocked)
        #expect(rig.begun.isEmpty)
        _ = try rig.ask(query("a.example", .mx)).client
        _ = try rig.ask(query("www.ads.example")).client
        let status = rig.provider.status(at: rig.now)
        #expect(status.hosts == HostNames.Counts(3, 1, 0))
        // What they say holds at once, and as long as they say it.
        rig.provider.setHosts(HostNames())
        _ = try rig.ask(query("ads.example")).client
    }

    @Test("I5: what a hosts file blocks, it blocks behind aliases too, and a rule lets it through")
    func aliases() throws {
        var rig = try Rig(try DNSProxyConfiguration.plain.with(rules: "@@||good.example^"))
        let alias = record(.cname, wire("x.ads.example"))
        let found = record(.a, owner: "x.ads.example", address(192, 0, 2, 1))
        try rig.resolve(query("www.example"), [alias, found])
        rig.provider.setHosts(try names("0.0.0.0 x.ads.example good.example"))
        let blocked = try rig.ask(query("www.example", opt: opt())).answer
        #expect(blocked.data(.a) == [[0, 0, 0, 0]] && blocked.holds("dns.hostsFile"))
        _ = try rig.ask(query("good.example")).client
        // A reload keeps what hosts files say.
        try rig.provider.reload(try DNSProxyConfiguration.plain.with(rules: "||ads.example^"), at: rig.now)
        #expect(try rig.ask(query("good.example")).answer.data(.a) == [[0, 0, 0, 0]])
        #expect(try rig.ask(query("www.example", opt: opt())).answer.holds("rules.inline"))
    }

    @Test("I4: of a long list every name is blocked, and no other; it makes no difference in how many pieces it comes")
    func longList() throws {
        var generator = SeededGenerator(seed: 9)
        let all = Set((0..<20_000).map { "n\($0).d\(generator.below(700)).example" })
        // Some are there twice, in other letters too.
        let lines = all.map { "0.0.0.0 \($0)\n" } + all.prefix(500).map { "127.0.0.1 \($0.uppercased())\n" }
        var names = HostNames()
        for start in stride(from: 0, to: lines.count, by: 999) {
            let piece = Array(lines[start..<min(start + 999, lines.count)].joined().utf8)
            names.add(linesOf: piece.span.octets, isStart: start == 0)
        }
        names.finish()
        #expect(names.counts == HostNames.Counts(0, all.count, 0))
        var rig = try Rig()
        rig.provider.setHosts(names)
        for name in all.prefix(300) {
            #expect(try rig.ask(query(name)).answer.data(.a) == [[0, 0, 0, 0]])
            _ = try rig.ask(query("x" + name)).client
        }
        // Another file behind it.
        names.add(contentsOf: Array("0.0.0.0 x.another.example".utf8).span.octets)
        #expect(names.counts.blocked == all.count + 1)
    }

    @Test("Bytes of any kind are read to their end, and lines are counted at most once", arguments: 0..<40)
    func anyBytes(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let alphabet = Array("0123456789.:abcfx# \t\r\n%\\".utf8) + [0, 0xC3, 0xFF]
        let bytes = (0..<4000).map { _ in alphabet[generator.below(alphabet.count)] }
        var names = HostNames()
        names.add(contentsOf: bytes.span.octets)
        let lines = bytes.split { $0 == 10 || $0 == 13 }.count
        #expect(names.counts.ignoredLines <= lines)
    }
}

extension HostNames.Counts {
    fileprivate init(_ addresses: Int, _ blocked: Int, _ ignoredLines: Int) {
        self.init()
        (self.addresses, self.blocked, self.ignoredLines) = (addresses, blocked, ignoredLines)
    }
}

extension Answer {
    /// True when a text is somewhere in the bytes.
    func holds(_ text: String) -> Bool {
        let text = Array(text.utf8)
        return bytes.indices.dropLast(text.count - 1).contains { Array(bytes[$0..<$0 + text.count]) == text }
    }
}
