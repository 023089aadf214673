import ByteAccess
import DNSMessage
import DNSProxy
import EncryptedDNS
import Provider
import SecureStream
import TestSupport
import Testing

@Suite struct DoTTests {
    private func link(pieceLength: Int = 1400, limits: ConnectionLimits = ConnectionLimits()) throws -> Link<
        DoTConnection
    > {
        let certificates = Certificates.shared
        return Link(
            DoTConnection(
                try certificates.client(certificates.authority(), protocols: ["dot"]), limits: limits, at: seconds(1)),
            try certificates.server("good", protocols: ["dot"]), pieceLength: pieceLength)
    }

    /// The messages in a stream.
    private func messages(in stream: [UInt8]) -> [[UInt8]] {
        var (all, offset) = ([[UInt8]](), 0)
        while offset + 2 <= stream.count {
            let length = Int(stream[offset]) << 8 | Int(stream[offset + 1])
            all.append(Array(stream[offset + 2..<offset + 2 + length]))
            offset += 2 + length
        }
        return all
    }

    @Test(arguments: [1, 7, 1400])
    func `queries with equal IDs are answered in any order, however the stream is cut`(_ pieceLength: Int) throws {
        var link = try link(pieceLength: pieceLength)
        for number in 1...20 {
            try link.connection.send(query("n\(number).example", id: 7, edns: true), UInt64(number))
        }
        link.run()
        let queries = messages(in: link.decrypted)
        #expect(queries.count == 20 && Set(queries.map { Array($0[..<2]) }).count == 20)
        #expect(queries.allSatisfy { $0.count == 128 })
        try link.write(queries.reversed().flatMap { framed(answer(to: $0)) })
        let answers = link.events.answers
        #expect(answers.count == 20)
        for number in 1...20 {
            let message = try #require(answers[UInt64(number)])
            #expect(name(in: message) == "n\(number).example" && message[0] == 0 && message[1] == 7)
        }
        expect(link.connection.exchangeCount == 0 && link.events.end == nil)
    }

    @Test func `answers that nobody waits for are counted, and no answer is given twice`() throws {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        try link.connection.send(query("b.example"), 2)
        link.run()
        link.connection.cancel(exchange(2), at: seconds(1))
        let queries = messages(in: link.decrypted)
        try link.write(
            framed(answer(to: queries[0])) + framed(answer(to: queries[0])) + framed(answer(to: queries[1])))
        expect(link.events.answers.count == 1 && link.connection.unexpectedCount == 2)
        try link.connection.send(query("c.example"), 3)
        link.run()
        try link.write(framed(messages(in: link.decrypted)[2]))
        expect(link.events.failures == [3: .invalidAnswer] && link.events.end == nil)
    }

    @Test(arguments: [[0, 0], [0, 11] + [UInt8](repeating: 0, count: 11)])
    func `a length that no message has ends the connection`(_ bytes: [UInt8]) throws {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        try link.write(bytes)
        let expected = ConnectionError.framing(.messageTooShort(length: Int(bytes[1])))
        expect(link.events.failures == [1: expected] && link.events.end == expected)
    }

    @Test func `the longest message is taken`() throws {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        let long = answer(to: messages(in: link.decrypted)[0]) + [UInt8](repeating: 9, count: 65_535 - 27)
        #expect(long.count == 65_535)
        try link.write(framed(long))
        expect(link.events.answers[1]?.count == 65_535)
    }

    @Test func `an idle connection that the server closes gives back nothing, and one in use everything`() throws {
        var idle = try link()
        idle.run()
        idle.server.close()
        idle.run()
        expect(idle.events == [.ready, .closed(.closedByServer)])
        var busy = try link()
        try busy.connection.send(query("a.example"), 1)
        busy.run()
        busy.server.close()
        busy.run()
        expect(busy.events.failures == [1: .closedByServer] && busy.events.end == .closedByServer)
    }

    @Test func `there is a bound to what is under way`() throws {
        var limits = ConnectionLimits()
        limits.exchangeCount = 2
        var link = try link(limits: limits)
        try link.connection.send(query("a.example"), 1)
        #expect(throws: SendError.repeatedExchange) { try link.connection.send(query("a.example"), 1) }
        #expect(throws: SendError.invalidQuery) { try link.connection.send([1, 2, 3], 9) }
        #expect(throws: SendError.invalidQuery) {
            try link.connection.send([UInt8](repeating: 0, count: 4097), 9)
        }
        try link.connection.send(query("b.example"), 2)
        expect(!link.connection.canTakeMore)
        #expect(throws: SendError.full) { try link.connection.send(query("c.example"), 3) }
    }

    @Test func `TCP has the same queries without TLS, and without padding`() throws {
        var connection = StreamConnection(PlainStream(), at: seconds(1))
        try connection.send(query("a.example", edns: true), 1)
        let sent = messages(in: connection.takeOutgoing())
        #expect(sent.count == 1 && sent[0].count == query("a.example", edns: true).count)
        let bytes = framed(answer(to: sent[0]))
        for byte in bytes { connection.receive([byte].span.octets, at: seconds(1)) }
        let events = connection.takeEvents()
        #expect(events.answers == [1: answer(to: query("a.example", edns: true))])
    }

    @Test(arguments: 1...130)
    func `encrypted queries with EDNS are padded to whole blocks, and their bytes stay`(_ length: Int) throws {
        var link = try link()
        let name =
            String(repeating: "a", count: min(length, 60))
            + (length > 60 ? "." + String(repeating: "b", count: min(length - 60, 60)) : "")
        let plain = query(name, edns: true)
        try link.connection.send(plain, 1)
        link.run()
        let sent = messages(in: link.decrypted)[0]
        #expect(sent.count % 128 == 0 && sent.count < plain.count + 4 + 128)
        #expect(Array(sent[2..<plain.count - 2]) == Array(plain[2..<plain.count - 2]))
        let padding = sent.count - plain.count - 4
        guard padding >= 0 else { return expect(sent.count == plain.count) }
        let expected = [0, UInt8(padding + 4), 0, 12, 0, UInt8(padding)] + [UInt8](repeating: 0, count: padding)
        #expect(Array(sent[(plain.count - 2)...]) == expected)
    }
}

/// Servers that are not who they should be: refused for the right reason, and no byte of a query reaches them.
@Suite struct RefusalTests {
    static let cases: [(String, String, CertificateProblem)] = [
        ("other", "authority", .wrongName), ("expired", "authority", .expired), ("alone", "authority", .selfSigned),
        ("good", "system", .unknownAuthority), ("good", "pinned", .pinMismatch), ("good", "pins alone", .pinMismatch),
    ]

    private func policy(_ name: String) throws -> TrustPolicy {
        let pins = try #require(Certificates.foreignPins)
        return switch name {
        case "system": .authorities(.system)
        case "pinned": Certificates.shared.authority(pins)
        case "pins alone": .pinsOnly(pins)
        default: Certificates.shared.authority()
        }
    }

    @Test(arguments: cases.indices)
    func `by TLS`(_ index: Int) throws {
        let (server, policyName, problem) = Self.cases[index]
        let certificates = Certificates.shared
        var link = Link(
            DoTConnection(try certificates.client(policy(policyName), protocols: ["dot"]), at: seconds(1)),
            try certificates.server(server, protocols: ["dot"]))
        try check(&link, problem)
    }

    @Test(arguments: cases.indices)
    func `by HTTPS`(_ index: Int) throws {
        let (server, policyName, problem) = Self.cases[index]
        let certificates = Certificates.shared
        let target = try #require(DoHTarget(authority: "dns.example", path: "/dns-query"))
        var link = Link(
            try DoHConnection(
                certificates.client(policy(policyName), protocols: ["h2"]), target: target, at: seconds(1)),
            try certificates.server(server, protocols: ["h2"]))
        try check(&link, problem)
    }

    private func check<Connection: DNSConnection & ~Copyable>(
        _ link: inout Link<Connection>, _ problem: CertificateProblem
    ) throws {
        try link.connection.send(query("secret.example"), 1)
        link.run()
        expect(link.events == [.failed(exchange(1), .untrusted(problem)), .closed(.untrusted(problem))])
        expect(!ConnectionError.untrusted(problem).isRetryable)
        #expect(throws: SendError.closed) { try link.connection.send(query("secret.example"), 2) }
        link.run()
        expect(link.decrypted.isEmpty)
    }
}
