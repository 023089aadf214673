import ByteAccess
import IPPacket
import SecureStream
import TestSupport
import Testing

@Suite struct TLSStreamTests {
    private let certificates = Certificates.shared

    private func authority(_ pins: PublicKeyPins? = nil) -> TrustPolicy {
        .authorities(.file(certificates.path("authority.pem")), pins: pins)
    }

    private func exchange(
        _ policy: TrustPolicy, _ server: String, _ identity: ServerIdentity = .name("dns.example"),
        pieceLength: Int = 1400,
        protocols: [String] = [], serverProtocols: [String] = []
    ) throws -> Exchange {
        let context = try TLSClientContext(policy, protocols: protocols)
        return try Exchange(
            TLSClient(context, identity: identity), certificates.server(server, protocols: serverProtocols),
            pieceLength: pieceLength)
    }

    @Test(arguments: [1, 100, 20_000])
    func `bytes go both ways however the ciphertext is cut`(_ pieceLength: Int) throws {
        var exchange = try exchange(authority(), "good", pieceLength: pieceLength)
        try exchange.run()
        expect(exchange.client.state == .established && exchange.server.state == .established)
        expect(exchange.client.version == 0x0304)
        let query = [UInt8](repeating: 7, count: 40_000)
        try exchange.client.write(query.span.octets)
        try exchange.run()
        expect(exchange.received == query)
        try exchange.server.write(([1, 2, 3] as [UInt8]).span.octets)
        try exchange.run()
        expect(try exchange.client.readAll() == [1, 2, 3])
        exchange.server.close()
        try exchange.run()
        var buffer = [UInt8](repeating: 0, count: 8)
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        expect(try exchange.client.read(into: &octets) == .closed)
        expect(exchange.client.state == .closed)
    }

    @Test func `nothing can be written before the server is known`() throws {
        var exchange = try exchange(authority(), "good")
        let (state, count) = (exchange.client.state, exchange.client.outgoingCount)
        #expect(state == .handshaking && count > 0)
        do {
            try exchange.client.write(([1] as [UInt8]).span.octets)
            Issue.record("a byte was taken")
        } catch {
            #expect(error == .notEstablished)
        }
    }

    @Test func `SNI has the name, and is left out for addresses`() throws {
        var named = try exchange(authority(), "good", .name("dns.example."))
        try named.run()
        expect(named.server.requestedName == "dns.example")
        for address in [IPAddress.v4(IPv4Address(192, 0, 2, 1)), .v6(IPv6Address(high: 0x2001_0DB8_0000_0000, low: 1))]
        {
            var numbered = try exchange(authority(), "good", .address(address))
            try numbered.run()
            expect(numbered.client.state == .established)
            expect(numbered.server.requestedName == nil)
        }
    }

    @Test func `ALPN agrees on what the server prefers, and on nothing without it`() throws {
        var both = try exchange(authority(), "good", protocols: ["dot", "h2"], serverProtocols: ["h2", "dot"])
        try both.run()
        expect(both.client.negotiatedProtocol == "h2" && both.server.negotiatedProtocol == "h2")
        var neither = try exchange(authority(), "good", protocols: ["h2"])
        try neither.run()
        expect(neither.client.state == .established && neither.client.negotiatedProtocol == nil)
        var none = try exchange(authority(), "good", protocols: ["h2"], serverProtocols: ["dot"])
        do {
            try none.run()
            Issue.record("a handshake without a common protocol")
        } catch {
            guard case .protocolFailure = error else { throw error }
        }
    }

    @Test func `a session is gone on with, by the same server only`() throws {
        let context = try TLSClientContext(authority(try certificates.pins("good")))
        let server = try certificates.server("good")
        var first = try Exchange(TLSClient(context, identity: .name("dns.example")), server)
        try first.run()
        expect(!first.client.isResumed)
        // Tickets come behind the handshake and are read with the data.
        try first.server.write(([1] as [UInt8]).span.octets)
        try first.run()
        _ = try first.client.readAll()
        first.client.close()
        do {
            _ = try TLSClient(context, identity: .name("other.example"), resuming: first.client.session)
            Issue.record("a session of another server")
        } catch {
            #expect(error == .foreignSession)
        }
        var second = try Exchange(
            TLSClient(context, identity: .name("dns.example"), resuming: first.client.session), server)
        try second.run()
        expect(second.client.isResumed && second.client.state == .established)
        try second.client.write(([5] as [UInt8]).span.octets)
        try second.run()
        expect(second.received == [5])
    }

    @Test(arguments: [false, true])
    func `a session outlives its connection, whichever side ended that`(_ serverEnds: Bool) throws {
        let context = try TLSClientContext(authority())
        let server = try certificates.server("good")
        let session = try session(of: context, server, serverEnds)
        var second = try Exchange(TLSClient(context, identity: .name("dns.example"), resuming: session), server)
        try second.run()
        expect(second.client.isResumed && second.client.state == .established)
    }

    /// What is left of a connection that is gone.
    private func session(
        of context: TLSClientContext, _ server: TLSServerContext, _ serverEnds: Bool
    ) throws -> TLSSession? {
        var first = try Exchange(TLSClient(context, identity: .name("dns.example")), server)
        try first.run()
        try first.server.write(([1] as [UInt8]).span.octets)
        try first.run()
        if serverEnds { first.server.close() }
        try first.run()
        _ = try first.client.readAll()
        first.client.close()
        return first.client.session
    }

    @Test(arguments: ["", "a/b", "*.example", "a\0b", "dns example", String(repeating: "a", count: 254)])
    func `what is no name of a server is refused`(_ name: String) throws {
        let context = try TLSClientContext(authority())
        do {
            _ = try TLSClient(context, identity: .name(name))
            Issue.record("a name of a server")
        } catch {
            #expect(error == .invalidServerName)
        }
    }

    @Test func `without authorities there is no context`() {
        for path in ["/nonexistent/ca.pem", certificates.path("good.key"), "/dev/null"] {
            #expect(throws: TLSError.unreadableAuthorities) { try TLSClientContext(.authorities(.file(path))) }
        }
        #expect(throws: TLSError.unreadableCertificate) {
            try TLSServerContext(
                certificateFile: certificates.path("good.pem"), keyFile: certificates.path("other.key"))
        }
        #expect(throws: TLSError.invalidProtocol) { try TLSClientContext(authority(), protocols: [""]) }
    }

    @Test func `garbage instead of a ServerHello is a typed error, and the stream has failed`() throws {
        let context = try TLSClientContext(authority())
        var client = try TLSClient(context, identity: .name("dns.example"))
        do {
            try client.receive(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8).span.octets)
            Issue.record("garbage was taken")
        } catch {
            guard case .protocolFailure = error else { throw error }
        }
        expect(client.state == .failed)
        do {
            try client.write(([1] as [UInt8]).span.octets)
            Issue.record("a byte was taken")
        } catch {
            #expect(error == .closed)
        }
    }
}
