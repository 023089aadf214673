import ByteAccess
import DNSMessage
import Provider
import TestSupport
import Testing

@testable import DNSProxy

/// The short way of plain queries against the way of all: a reload leaves what is kept, but has each entry found by the way of all once.
@Suite("Plain queries")
struct PlainQueryTests {
    /// What is asked about, and what servers say.
    private struct Subject {
        var name: String
        var type: RecordType
        var flags: UInt16 = 0x8180
        var answers: [[UInt8]] = []
        var authority: [[UInt8]] = []
        var additional: [[UInt8]] = []
    }

    private static let unknown = RecordType(rawValue: 65_400)
    private static let label = String(repeating: "x", count: 63)

    private static let subjects: [Subject] = [
        Subject(name: "example.com", type: .a, answers: [record(.a, ttl: 100, address(192, 0, 2, 1))]),
        // The key of ECH, 5, is taken out, and who has EDNS is told.
        Subject(
            name: "WWW.Example.COM", type: .https,
            answers: [record(.https, ttl: 9000, [0, 1, 0, 0, 1, 0, 3, 2, 0x68, 0x32, 0, 5, 0, 4, 1, 2, 3, 4])]),
        Subject(
            name: "alias.example", type: .a,
            answers: [
                record(.cname, ttl: 871, [1, 0x62, 0]), record(.a, owner: "b", ttl: 563, address(192, 0, 2, 1)),
                record(.a, owner: "b", ttl: 0x7FFF_FFFF, address(192, 0, 2, 2)),
            ]),
        Subject(name: "", type: .ns, answers: [record(.ns, owner: "", ttl: 500_000, wire("ns.example"))]),
        Subject(
            name: "nothing.example", type: .aaaa, flags: 0x8183,
            authority: [soa("example", ttl: 900, minimum: 700)]),
        Subject(
            name: "authentic.example", type: .txt, flags: 0x81A0,
            answers: [record(.txt, ttl: 3600, [3, 65, 66, 67]), record(.rrsig, ttl: 3600, signature)],
            additional: [record(.a, owner: "x", ttl: 77, address(192, 0, 2, 9))]),
        Subject(
            name: "big.example", type: .txt,
            answers: [[UInt8]](repeating: record(.txt, ttl: 60, [200] + [UInt8](repeating: 65, count: 200)), count: 9)),
        Subject(
            name: "\(label).\(label).example", type: .a, answers: [record(.a, ttl: 1000, address(192, 0, 2, 1))]),
        Subject(
            name: "\(label).\(label).\(label).\(label.dropLast(2))", type: .a,
            answers: [record(.a, ttl: 1000, address(192, 0, 2, 1))]),
        Subject(name: "a", type: unknown, answers: [record(unknown, [1, 2])]),
    ]

    private static let signature: [UInt8] =
        [0, 16, 8, 2] + bytes(3600 as UInt32) + [UInt8](repeating: 1, count: 10) + wire("example") + [1, 2, 3, 4]

    private static func configuration() throws -> DNSProxyConfiguration {
        try DNSProxyConfiguration.servers(.tcp, trusted: true).with(rules: "||ads.example^")
            .with { $0.rewriting.removesECH = true }
    }

    /// A rig in whose cache the answers are to all four combinations of DO and CD.
    private static func rig() throws -> Rig {
        var rig = try Rig(configuration())
        for subject in subjects {
            for dnssecOK in [false, true] {
                for flags: UInt16 in [0x0100, 0x0110] {
                    try rig.resolve(
                        query(subject.name, subject.type, flags: flags, opt: opt(dnssecOK: dnssecOK)), by: .tcp,
                        flags: subject.flags | flags & 0x10, subject.answers, authority: subject.authority,
                        additional: subject.additional)
                }
            }
        }
        return rig
    }

    /// A query about a subject as a client might send it.
    private static func clientsQuery(
        _ subject: Subject, using generator: inout SeededGenerator
    ) -> [UInt8] {
        let mixed = subject.name.map { character in
            generator.below(2) == 0 ? character.uppercased() : character.lowercased()
        }
        let sizes: [UInt16] = [0, 512, 600, 1232, 4096, 65_535]
        let record: [UInt8]? =
            generator.below(3) == 0
            ? nil
            : opt(
                generator.below(8) == 0 ? option(10, [1, 2, 3, 4, 5, 6, 7, 8]) : [],
                dnssecOK: generator.below(2) == 0, size: sizes[generator.below(sizes.count)])
        let flags = UInt16(truncatingIfNeeded: generator.next()) & 0x07FF
        return query(
            mixed.joined(), subject.type, id: UInt16(truncatingIfNeeded: generator.next()), flags: flags, opt: record)
            + [UInt8](repeating: 7, count: generator.below(4) == 0 ? generator.below(20) : 0)
    }

    @Test("A1, B1, B2, B9, B14, B16, F1: by the short way clients get octet for octet what they get by the way of all")
    func sameAnswers() throws {
        var rig = try Self.rig()
        let configuration = try Self.configuration()
        var generator = SeededGenerator(seed: 23)
        var short = 0
        for round in 0..<4000 {
            if round % 500 == 499 { rig.pass(.milliseconds(5_300)) }
            let subject = Self.subjects[generator.below(Self.subjects.count)]
            var asked = Self.clientsQuery(subject, using: &generator)
            // Some are changed by chance, and most of those are not in order, or go to a server.
            let isChanged = generator.below(8) == 0
            if isChanged {
                asked[generator.below(asked.count)] = UInt8(truncatingIfNeeded: generator.next())
            }
            let transport: ClientTransport = generator.below(3) == 0 ? .tcp : .udp
            try rig.provider.reload(configuration, at: rig.now)
            let before = rig.provider.status(at: rig.now).counters
            let first = rig.ask(asked, by: transport)
            let between = rig.provider.status(at: rig.now).counters
            guard case .answer = first else {
                #expect(isChanged)
                continue
            }
            if Self.goesShort(&rig, asked, transport) { short += 1 }
            let afterShort = rig.provider.status(at: rig.now).counters
            let second = rig.ask(asked, by: transport)
            let after = rig.provider.status(at: rig.now).counters
            #expect(first == second, "\(asked)")
            #expect(after.cacheHits - afterShort.cacheHits == between.cacheHits - before.cacheHits)
            #expect(after.queries == afterShort.queries + 1 && between.queries == before.queries + 1)
        }
        // Else nothing was compared.
        #expect(short > 1500)
    }

    private static func goesShort(_ rig: inout Rig, _ query: [UInt8], _ transport: ClientTransport) -> Bool {
        var buffer = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        return rig.provider.answerPlainly(query.span.octets, by: transport, at: rig.now, into: &output) != nil
    }

    @Test("F11: what went the short way is blocked as soon as a rule says so, and is there again without the rule")
    func rules() throws {
        var rig = try Rig()
        let asked = query("example.com")
        try rig.resolve(asked, [record(.a, ttl: 3600, address(192, 0, 2, 1))])
        for _ in 0..<3 { #expect(try rig.ask(asked).answer.data(.a) == [address(192, 0, 2, 1)]) }
        var goesShort = Self.goesShort(&rig, asked, .udp)
        #expect(goesShort)
        try rig.provider.reload(.plain.with(rules: "||com^"), at: rig.now)
        goesShort = Self.goesShort(&rig, asked, .udp)
        #expect(!goesShort)
        for _ in 0..<3 { #expect(try rig.ask(asked).answer.data(.a) == [address(0, 0, 0, 0)]) }
        try rig.provider.reload(.plain, at: rig.now)
        for _ in 0..<3 { #expect(try rig.ask(asked).answer.data(.a) == [address(192, 0, 2, 1)]) }
    }

    @Test("F11: an answer that comes after the rule that blocks its question is not given by any way")
    func ruleBeforeAnswer() throws {
        var rig = try Rig()
        let asked = query("example.com")
        let (_, sent) = try rig.forward(asked)
        try rig.provider.reload(.plain.with(rules: "||com^"), at: rig.now)
        rig.deliver(reply(to: sent, [record(.a, ttl: 3600, address(192, 0, 2, 1))]))
        for _ in 0..<3 { #expect(try rig.ask(asked).answer.data(.a) == [address(0, 0, 0, 0)]) }
    }

    @Test("An answer ends with its TTL by the short way too, and nothing is given by a proxy that does not run")
    func ends() throws {
        var rig = try Rig()
        let asked = query("example.com")
        try rig.resolve(asked, [record(.a, ttl: 10, address(192, 0, 2, 1))])
        _ = rig.ask(asked)
        rig.pass(.milliseconds(9_999))
        var goesShort = Self.goesShort(&rig, asked, .udp)
        #expect(goesShort)
        #expect(try rig.ask(asked).answer.ttls(.a) == [1])
        rig.pass(.milliseconds(1))
        goesShort = Self.goesShort(&rig, asked, .udp)
        #expect(!goesShort)
        _ = try rig.ask(asked).client
        rig.provider.stop(.userInitiated, at: rig.now)
        #expect(try rig.ask(asked).answer.code == .serverFailure)
    }

    @Test("A9: ANY by UDP gets the short answer although a whole one is kept for TCP")
    func any() throws {
        var rig = try Rig(.servers(.tcp))
        let asked = query("example.com", .any)
        try rig.resolve(asked, by: .tcp, [record(.a, ttl: 600, address(192, 0, 2, 1))])
        for _ in 0..<2 {
            #expect(try rig.ask(asked, by: .tcp).answer.data(.a).count == 1)
            #expect(try rig.ask(asked).answer.data(.hinfo).count == 1)
        }
    }
}
