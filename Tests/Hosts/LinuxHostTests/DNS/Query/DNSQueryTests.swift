import CLinux
import Glibc
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct DNSQueryTests {
    private func options(_ port: UInt16, _ scheme: String = "udp") -> DNSQueryOptions {
        var options = DNSQueryOptions()
        options.name = "www.example.org"
        options.upstream = "\(scheme)://127.0.0.1:\(port)"
        return options
    }

    private func ask(_ options: DNSQueryOptions) throws -> BackgroundThread<DNSQueryResult> {
        let query = try DNSQuery(options)
        return try BackgroundThread { query.run() }
    }

    /// The query's answer with one record behind the question; what was additional is left out.
    private func answer(to query: [UInt8], type: UInt8 = 1, data: [UInt8] = [192, 0, 2, 7]) -> [UInt8] {
        var bytes = Array(wireAnswer(to: query).prefix(12 + "www.example.org".utf8.count + 2 + 4))
        (bytes[7], bytes[11]) = (1, 0)
        return bytes + [0xC0, 12, 0, type, 0, 1, 0, 0, 1, 44, 0, UInt8(data.count)] + data
    }

    @Test func `the answer is shown with all that it says, and who gave it`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        let asking = try ask(options(server.port))
        let (query, sender) = try server.receive()
        try server.send(answer(to: query), to: sender)
        guard case .answer(let text) = try asking.finish() else {
            Issue.record("no answer")
            return
        }
        for line in [
            "opcode: QUERY, rcode: NOERROR", "qr rd ra", ";; www.example.org.\tIN\tA",
            "www.example.org.\t300\tIN\tA\t192.0.2.7",
            ";; Query time:", ";; Server: 127.0.0.1:\(server.port) (UDP)", ";; Message size: 49 bytes",
        ] {
            #expect(text.contains(line), "\(line) in \(text)")
        }
    }

    @Test func `options are bits of the query`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        var options = options(server.port)
        (options.dnssecOK, options.checkingDisabled, options.recursionDesired) = (true, true, false)
        options.type = "type65280"
        let asking = try ask(options)
        let (query, sender) = try server.receive()
        // RD clear, CD set; the OPT record at the end has DO.
        #expect(query[2] & 1 == 0 && query[3] & 0x10 != 0)
        #expect(Array(query.suffix(11)) == [0, 0, 41, 0x04, 0xD0, 0, 0, 0x80, 0, 0, 0])
        #expect(Array(query[29..<33]) == [0xFF, 0x00, 0, 1])
        try server.send(answer(to: query), to: sender)
        _ = try asking.finish()
    }

    @Test func `what does not fit into a datagram is asked for by TCP`() throws {
        let datagrams = try LoopbackServer(SOCK_DGRAM)
        let streams = try LoopbackServer(SOCK_STREAM, port: datagrams.port)
        let asking = try ask(options(datagrams.port))
        let (query, sender) = try datagrams.receive()
        var truncated = wireAnswer(to: query)
        truncated[2] |= 2
        try datagrams.send(truncated, to: sender)
        let connection = try streams.accept()
        try awaitReady(connection.descriptor.rawValue, "a query by TCP")
        let queries = framedMessages(in: try #require(try connection.readSome()))
        try connection.write(framed(answer(to: try #require(queries.first))))
        guard case .answer(let text) = try asking.finish() else {
            Issue.record("no answer")
            return
        }
        #expect(text.contains("(TCP)") && text.contains("192.0.2.7"))
    }

    @Test func `what no library reads is shown octet by octet`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        let asking = try ask(options(server.port))
        let (query, sender) = try server.receive()
        // A SINK record, of which ldns reads the first octet alone.
        try server.send(answer(to: query, type: 40, data: [1, 2, 0xAB]), to: sender)
        guard case .answer(let text) = try asking.finish() else {
            Issue.record("no answer")
            return
        }
        #expect(text.contains("www.example.org.\t300\tCLASS1\tTYPE40\t\\# 3 0102ab"))
    }

    @Test func `answers to other questions are passed over`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        let asking = try ask(options(server.port))
        let (query, sender) = try server.receive()
        var other = answer(to: query)
        other[13] = UInt8(ascii: "x")
        try server.send(other, to: sender)
        try server.send(answer(to: query), to: sender)
        guard case .answer(let text) = try asking.finish() else {
            Issue.record("no answer")
            return
        }
        #expect(text.contains("www.example.org.\t300"))
    }

    @Test func `a lost datagram is sent again, and silence ends in time`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        var options = options(server.port)
        options.timeout = "0.3"
        let asking = try ask(options)
        var ports: Set<UInt16> = []
        for _ in 0..<3 { ports.insert(try server.receive().sender.port) }
        #expect(ports.count == 3)
        #expect(try asking.finish() == .noAnswer("no answer: timed out"))
    }

    @Test(arguments: ["udp", "tcp"])
    func `nobody listens`(_ scheme: String) throws {
        let port = try LoopbackServer(scheme == "udp" ? SOCK_DGRAM : SOCK_STREAM).port
        guard case .noAnswer(let reason) = try ask(options(port, scheme)).finish() else {
            Issue.record("an answer")
            return
        }
        #expect(reason.contains("ECONNREFUSED"))
    }

    @Test func `authorities that cannot be read are said to be so`() throws {
        var options = options(853, "tls")
        options.authorityFile = "/nonexistent/authority.pem"
        guard case .failed(let reason) = try DNSQuery(options).run() else {
            Issue.record("it was asked")
            return
        }
        #expect(reason.contains("authorities"))
    }

    private typealias Change = @Sendable (inout DNSQueryOptions) -> Void

    private static let impossible: [(word: String, change: Change)] = [
        ("name", { $0.name = "a..b" }), ("type", { $0.type = "TYPE65536" }), ("type", { $0.type = "NOSUCH" }),
        ("URL", { $0.upstream = "192.0.2.1" }), ("URL", { $0.upstream = "quic://192.0.2.1" }),
        ("--address", { $0.address = "192.0.2.2" }), ("--timeout", { $0.timeout = "0" }),
        ("--timeout", { $0.timeout = "soon" }), ("--method", { $0.method = "get" }),
        ("--ca", { $0.authorityFile = "a" }),
        ("--ca", { $0.pins = ["sha256/x"] }),
        ("--pin takes", { ($0.upstream, $0.pins) = ("tls://192.0.2.1", ["sha256/x"]) }),
        (
            "two different pins",
            { ($0.upstream, $0.pins) = ("tls://192.0.2.1", ["sha256/\(String(repeating: "A", count: 43))="]) }
        ),
        ("needs pins", { ($0.upstream, $0.isPinOnly) = ("tls://192.0.2.1", true) }),
        ("--tcp", { ($0.upstream, $0.usesTCP) = ("tls://192.0.2.1", true) }),
    ]

    @Test(arguments: impossible.indices)
    func `what cannot be asked is said in a line`(_ index: Int) {
        let (word, change) = Self.impossible[index]
        var options = options(53)
        change(&options)
        do throws(ImpossibleDNSQuery) {
            _ = try DNSQuery(options)
            Issue.record("it can be asked")
        } catch {
            #expect(error.description.contains(word) && !error.description.contains("\n"))
        }
    }
}
