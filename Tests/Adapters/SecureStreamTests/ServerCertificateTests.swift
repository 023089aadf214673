import ByteAccess
import Glibc
import SecureStream
import TestSupport
import Testing

/// Certificates and keys that a server is given in memory, and what it does with clients.
struct ServerCertificateTests {
    private let certificates = Certificates.shared

    private func bytes(_ name: String) throws -> [UInt8] {
        struct Unreadable: Error {}
        let file = unsafe fopen(certificates.path(name), "r")
        guard let file = unsafe file else { throw Unreadable() }
        defer { unsafe fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        // fread writes at most as many bytes as it is told.
        let count = unsafe fread(&buffer, 1, buffer.count, file)
        return Array(buffer[..<count])
    }

    private func context(_ chain: [UInt8], _ key: [UInt8]) throws -> TLSServerContext {
        try TLSServerContext(certificates: chain.span.octets, key: key.span.octets, protocols: ["dot"])
    }

    @Test(arguments: ["good", "below", "strong-rsa"])
    func `a certificate in memory is what clients see, with those between it and an authority`(_ name: String) throws {
        let server = try context(bytes("\(name).pem"), bytes("\(name).key"))
        #expect(server.validityProblem == nil)
        let trusting = try TLSClientContext(
            .authorities(.file(certificates.path("authority.pem"))), protocols: ["dot"])
        var both = try Exchange(TLSClient(trusting, identity: .name("dns.example")), server)
        try both.run()
        expect(both.client.state == .established && both.server.negotiatedProtocol == "dot")
    }

    @Test func `times are told`() throws {
        #expect(try context(bytes("expired.pem"), bytes("expired.key")).validityProblem == .expired)
        #expect(try context(bytes("early.pem"), bytes("early.key")).validityProblem == .notYetValid)
    }

    @Test func `what is wrong is told`() throws {
        let (chain, key) = try (bytes("good.pem"), bytes("good.key"))
        let broken = Array(
            String(decoding: chain, as: UTF8.self).replacing("MII", with: "MIH", maxReplacements: 1).utf8)
        let cases: [([UInt8], [UInt8], ServerCertificateError)] = [
            ([], key, .noCertificate), (key, key, .noCertificate), (Array("nonsense".utf8), key, .noCertificate),
            (broken, key, .brokenCertificate), (chain + broken, key, .brokenCertificate), (chain, [], .noKey),
            (chain, chain, .noKey), (chain, Array(key.dropLast(60)), .noKey),
            (chain, try bytes("other.key"), .otherKey), (chain, try bytes("strong-rsa.key"), .otherKey),
        ]
        for (chain, key, error) in cases {
            #expect(throws: error) { try context(chain, key) }
        }
        #expect(throws: ServerCertificateError.refusedCertificate(reason: "ee key too small")) {
            try context(bytes("weak-rsa.pem"), bytes("weak-rsa.key"))
        }
    }

    @Test func `a server that may goes on writing when the client has said that it is done`() throws {
        let server = try context(bytes("good.pem"), bytes("good.key"))
        var client = try TLSClient(
            TLSClientContext(.authorities(.file(certificates.path("authority.pem")))), identity: .name("dns.example"))
        var stream = try TLSServer(server, answersClose: false)
        while client.state == .handshaking || stream.state == .handshaking {
            try stream.receive(take { client.nextOutgoing(into: &$0) }.span.octets)
            try client.receive(take { stream.nextOutgoing(into: &$0) }.span.octets)
        }
        client.close()
        try stream.receive(take { client.nextOutgoing(into: &$0) }.span.octets)
        var buffer = [UInt8](repeating: 0, count: 100)
        do {
            var span = buffer.mutableSpan
            var octets = span.mutableOctets
            expect(try stream.read(into: &octets) == .closed)
        }
        expect(stream.state == .established)
        try stream.write(([1, 2, 3] as [UInt8]).span.octets)
        stream.close()
        expect(stream.state == .closed && stream.outgoingCount > 3)
    }

    @Test func `sessions are gone on with until the keys of tickets are new`() throws {
        let server = try context(bytes("good.pem"), bytes("good.key"))
        let trusting = try TLSClientContext(.authorities(.file(certificates.path("authority.pem"))))
        var session: TLSSession?
        for (number, isResumed) in [false, true, false, true].enumerated() {
            if number == 2 { server.renewTicketKeys() }
            var both = try Exchange(
                TLSClient(trusting, identity: .name("dns.example"), resuming: session.take()), server)
            try both.run()
            // Tickets come behind the handshake and are read with the data.
            try both.server.write(([1] as [UInt8]).span.octets)
            try both.run()
            _ = try both.client.readAll()
            expect(both.client.isResumed == isResumed && both.server.isResumed == isResumed)
            both.client.close()
            session = both.client.session
        }
    }

    private func take(_ body: (inout MutableRawSpan) -> Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        let count = body(&octets)
        return Array(buffer[..<count])
    }
}
