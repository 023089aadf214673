import ByteAccess
import DNSProxy
import EncryptedDNS
import Provider
import SecureStream
import TestSupport
import Testing

/// Queries of one turn leave together: a host sends them with one call.
@Suite struct BatchingTests {
    /// The lengths of the records of application data (RFC 8446 §5.1).
    private func records(in bytes: [UInt8]) -> [Int] {
        var (lengths, offset) = ([Int](), 0)
        while offset + 5 <= bytes.count {
            let length = Int(bytes[offset + 3]) << 8 | Int(bytes[offset + 4])
            if bytes[offset] == 23 { lengths.append(length) }
            offset += 5 + length
        }
        #expect(offset == bytes.count)
        return lengths
    }

    @Test func `DoT queries that are sent together come in one piece, and in records of their own`() throws {
        let certificates = Certificates.shared
        var link = Link(
            DoTConnection(try certificates.client(certificates.authority(), protocols: ["dot"]), at: seconds(1)),
            try certificates.server("good", protocols: ["dot"]))
        link.run()
        for number in 1...3 { try link.connection.send(query("\(number).example"), UInt64(number)) }
        expect(link.connection.outgoingCount > 0)
        let sent = link.connection.takeOutgoing()
        // What is encrypted is longer than a message with its length in front.
        #expect(records(in: sent).count == 3 && records(in: sent).allSatisfy { $0 > 2 + query("1.example").count })
        expect(link.connection.outgoingCount == 0 && link.connection.takeOutgoing().isEmpty)
        try link.server.receive(sent.span.octets)
        for number in [3, 1, 2] {
            try link.write(framed(answer(to: query("\(number).example"), id: UInt16(number))))
        }
        expect(link.events.answers.count == 3 && link.connection.exchangeCount == 0)
    }

    @Test func `DoH requests that are made together share a record`() throws {
        let certificates = Certificates.shared
        let target = try #require(DoHTarget(authority: "dns.example", path: "/dns-query"))
        var link = Link(
            try DoHConnection(
                certificates.client(certificates.authority(), protocols: ["h2"]), target: target, at: seconds(1)),
            try certificates.server("good", protocols: ["h2"]))
        link.run()
        try link.write(settings())
        for number in 1...3 { try link.connection.send(query("\(number).example"), UInt64(number)) }
        let sent = link.connection.takeOutgoing()
        #expect(records(in: sent).count == 1)
        expect(link.connection.outgoingCount == 0)
        try link.server.receive(sent.span.octets)
        // What the client says to it lets the server read.
        try link.write(settings())
        let http = ScriptedHTTPServer()
        http.read(link.decrypted)
        // A HEADERS frame for each, and a DATA frame with the query.
        #expect(http.frames.filter { $0.type == 1 }.count == 3 && http.frames.filter { $0.type == 0 }.count == 3)
    }

    @Test func `a request that is given up before it is written is not sent`() throws {
        let certificates = Certificates.shared
        let target = try #require(DoHTarget(authority: "dns.example", path: "/dns-query"))
        var link = Link(
            try DoHConnection(
                certificates.client(certificates.authority(), protocols: ["h2"]), target: target, at: seconds(1)),
            try certificates.server("good", protocols: ["h2"]))
        link.run()
        try link.write(settings())
        try link.connection.send(query("gone.example"), 1)
        link.connection.cancel(exchange(1), at: seconds(1))
        try link.connection.send(query("asked.example"), 2)
        link.run()
        let http = ScriptedHTTPServer()
        http.read(link.decrypted)
        #expect(http.frames.filter { $0.type == 1 }.count == 1 && http.frames.filter { $0.type == 3 }.isEmpty)
        expect(link.connection.exchangeCount == 1 && link.events.failures.isEmpty)
    }
}
