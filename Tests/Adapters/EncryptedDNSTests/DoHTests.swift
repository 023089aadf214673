import ByteAccess
import DNSProxy
import EncryptedDNS
import Provider
import SecureStream
import TestSupport
import Testing

/// Requests as RFC 8484 wants them, against a server that speaks HTTP/2 frame by frame.
@Suite struct DoHTests {
    private func link(
        _ method: DoHTarget.Method = .post, path: String = "/dns-query", pieceLength: Int = 1400,
        limits: ConnectionLimits = ConnectionLimits()
    ) throws -> Link<DoHConnection> {
        let certificates = Certificates.shared
        let target = try #require(DoHTarget(authority: "dns.example", path: path, method: method))
        return Link(
            try DoHConnection(
                certificates.client(certificates.authority(), protocols: ["h2"]), target: target, limits: limits,
                at: seconds(1)),
            try certificates.server("good", protocols: ["h2"]), pieceLength: pieceLength)
    }

    @Test(arguments: [1, 1400])
    func `POST sends the query with ID 0, its type and its length, and the answer gets its ID back`(_ piece: Int) throws
    {
        let http = ScriptedHTTPServer()
        var link = try link(pieceLength: piece)
        try link.connection.send(query("a.example", edns: true), 1)
        link.run()
        try link.write(settings(streams: 100))
        http.read(link.decrypted)
        let request = try #require(http.requests.first)
        #expect(request[":method"] == "POST" && request[":scheme"] == "https")
        #expect(request[":authority"] == "dns.example" && request[":path"] == "/dns-query")
        #expect(request["content-type"] == "application/dns-message")
        #expect(request["accept"] == "application/dns-message")
        #expect(request["content-length"] == "128" && request.body.count == 128 && request.isComplete)
        #expect(request.body.starts(with: [0, 0, 1, 0]) && name(in: request.body) == "a.example")
        #expect(request["user-agent"] == nil)
        try link.write(response(1, answer(to: query("a.example", id: 0))))
        expect(link.events.answers == [1: answer(to: query("a.example"))])
        expect(link.events.first == .ready && link.events.end == nil && link.connection.canTakeMore)
    }

    @Test func `GET has the query in the path, in Base64 for URLs without equals signs`() throws {
        // RFC 8484 §4.1.1 has this path for this query.
        let http = ScriptedHTTPServer()
        var link = try link(.get, path: "/dns-query{?dns}")
        try link.connection.send(query("www.example.com", id: 0x1234), 1)
        link.run()
        http.read(link.decrypted)
        let request = try #require(http.requests.first)
        #expect(request[":method"] == "GET" && request.isComplete && request.body.isEmpty)
        #expect(request[":path"] == "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB")
        #expect(request["content-type"] == nil && request["content-length"] == nil)
        try link.write(settings() + response(1, answer(to: query("www.example.com", id: 0))))
        expect(link.events.answers == [1: answer(to: query("www.example.com", id: 0x1234))])
    }

    @Test func `one stream until SETTINGS, then as many as they allow, answered in any order`() throws {
        let http = ScriptedHTTPServer()
        var link = try link()
        for number in 1...6 { try link.connection.send(query("n\(number).example"), UInt64(number)) }
        link.run()
        http.read(link.decrypted)
        #expect(http.requests.map(\.stream) == [1])
        try link.write(settings(streams: 4))
        http.read(link.decrypted)
        #expect(http.requests.map(\.stream) == [1, 3, 5, 7])
        expect(!link.connection.canTakeMore && link.connection.exchangeLimit == 4)
        do {
            try link.connection.send(query("n7.example"), 7)
            Issue.record("a query beyond the server's limit")
        } catch {
            #expect(error == .full)
        }
        for stream in [7, 3, 1, 5, 11, 9] as [UInt32] {
            http.read(link.decrypted)
            let request = try #require(http.requests.first { $0.stream == stream })
            try link.write(response(stream, answer(to: request.body)))
        }
        let expected = (1...6).map { (UInt64($0), answer(to: query("n\($0).example"))) }
        expect(link.events.answers == Dictionary(uniqueKeysWithValues: expected))
        // A limit that changes counts from then on.
        try link.write(settings(streams: 1))
        expect(link.connection.exchangeLimit == 1 && link.connection.canTakeMore)
    }

    @Test func `GOAWAY gives back what the server has not taken, and lets it finish the rest`() throws {
        var link = try link()
        for number in 1...3 { try link.connection.send(query("n\(number).example"), UInt64(number)) }
        link.run()
        try link.write(settings(streams: 100))
        try link.write(frame(7, octets(1) + octets(0)))
        expect(link.events.failures == [2: .refusedStream, 3: .refusedStream])
        expect(link.events.failures.values.allSatisfy(\.isRetryable) && !link.connection.canTakeMore)
        do {
            try link.connection.send(query("n4.example"), 4)
            Issue.record("a query after GOAWAY")
        } catch {
            #expect(error == .closed)
        }
        try link.write(response(1, answer(to: query("n1.example", id: 0))))
        expect(link.events.answers == [1: answer(to: query("n1.example"))])
        expect(link.events.end == .closedByServer && link.connection.isOver)
    }

    @Test(
        arguments: [(7, .refusedStream), (2, .streamReset(2)), (8, .streamReset(8))] as [(UInt32, ConnectionError)])
    func `RST_STREAM ends its exchange alone`(_ code: UInt32, _ expected: ConnectionError) throws {
        var link = try link()
        for number in 1...2 { try link.connection.send(query("n\(number).example"), UInt64(number)) }
        link.run()
        try link.write(settings(streams: 100))
        try link.write(frame(3, stream: 1, octets(code)))
        expect(link.events.failures == [1: expected])
        try link.write(response(3, answer(to: query("n2.example", id: 0))))
        expect(link.events.answers == [2: answer(to: query("n2.example"))] && link.events.end == nil)
    }

    /// What is no answer, and why. The connection goes on.
    static let wrongResponses: [(String, [UInt8], ConnectionError)] = {
        let right = answer(to: query("a.example", id: 0))
        let type = ("content-type", "application/dns-message")
        return [
            ("404", headers(1, [(":status", "404"), type]) + data(1, right), .httpStatus(404)),
            ("301", headers(1, end: true, [(":status", "301"), ("location", "https://b/")]), .httpStatus(301)),
            ("500 alone", headers(1, end: true, [(":status", "500")]), .httpStatus(500)),
            ("no type", headers(1, [(":status", "200")]) + data(1, right), .unexpectedContentType),
            (
                "another type", headers(1, [(":status", "200"), ("content-type", "text/html")]) + data(1, right),
                .unexpectedContentType
            ),
            ("no body", headers(1, end: true, [(":status", "200"), type]), .invalidAnswer),
            ("short", response(1, Array(right[..<11])), .invalidAnswer),
            ("another ID", response(1, answer(to: right, id: 7)), .invalidAnswer),
            ("a query", response(1, query("a.example", id: 0)), .invalidAnswer),
            ("length too large", response(1, right, [("content-length", "500")]), .streamReset(1)),
            ("length too small", response(1, right, [("content-length", "5")]), .streamReset(1)),
            ("no status", headers(1, [type]) + data(1, right), .streamReset(1)),
            (
                "long header", headers(1, [(":status", "200"), type, ("x", String(repeating: "a", count: 9_000))]),
                .headerTooLong
            ),
        ]
    }()

    @Test(arguments: wrongResponses.indices)
    func `what is no answer fails its exchange and nothing else`(_ index: Int) throws {
        let (what, bytes, expected) = Self.wrongResponses[index]
        var limits = ConnectionLimits()
        limits.headerByteCount = 8_000
        var link = try link(limits: limits)
        try link.connection.send(query("a.example"), 1)
        link.run()
        try link.write(settings() + bytes)
        expect(link.events.failures == [1: expected] && link.events.answers.isEmpty)
        #expect(!expected.isRetryable, "\(what)")
        try link.connection.send(query("b.example"), 2)
        link.run()
        try link.write(response(3, answer(to: query("b.example", id: 0))))
        expect(link.events.answers == [2: answer(to: query("b.example"))])
    }

    @Test func `a body longer than any message is not read to its end`() throws {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        try link.write(
            settings() + headers(1, [(":status", "200"), ("content-type", "application/dns-message")]))
        for _ in 0..<4 { try link.write(data(1, end: false, [UInt8](repeating: 0, count: 16_384))) }
        expect(link.events.failures == [1: .bodyTooLong] && link.events.end == nil)
    }

    @Test func `unfinished answers take no more memory than there is for all of them`() throws {
        var limits = ConnectionLimits()
        limits.bufferedByteCount = 1000
        var link = try link(limits: limits)
        for number in 1...3 { try link.connection.send(query("n\(number).example"), UInt64(number)) }
        link.run()
        try link.write(settings())
        for stream in [1, 3, 5] as [UInt32] {
            try link.write(headers(stream, [(":status", "200"), ("content-type", "application/dns-message")]))
            try link.write(data(stream, end: false, [UInt8](repeating: 0, count: 400)))
        }
        expect(link.events.failures == [3: .bodyTooLong] && link.connection.exchangeCount == 2)
    }

    @Test func `1xx before, trailers behind, padding and unknown frames do not matter`() throws {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        let right = answer(to: query("a.example", id: 0))
        try link.write(
            settings() + headers(1, [(":status", "103"), ("link", "</x>"), ("age", "50")])
                + frame(0xBA, stream: 1, [1, 2, 3])
                + headers(1, [(":status", "200"), ("content-type", "Application/DNS-Message; charset=x")])
                + frame(0, flags: 8, stream: 1, [3] + right + [0, 0, 0]) + headers(1, end: true, [("age", "77")]))
        expect(link.events.answers == [1: answer(to: query("a.example"))])
        guard case .answer(let answer)? = link.events.last else {
            Issue.record("no answer")
            return
        }
        #expect(answer.freshness == AnswerFreshness())
    }

    @Test(
        arguments: [
            ([("age", "30")], 30, nil), ([("cache-control", "max-age=60")], 0, 60),
            ([("age", "30"), ("cache-control", "private, Max-Age=60")], 30, 30),
            ([("age", "90"), ("cache-control", "max-age=60")], 90, 0), ([("cache-control", "no-store")], 0, 0),
            ([("age", "99999999999")], UInt32.max, nil), ([("age", "-1")], 0, nil),
        ] as [([(String, String)], UInt32, UInt32?)])
    func `Age and max-age are told with the answer`(_ fields: [(String, String)], _ age: UInt32, _ life: UInt32?) throws
    {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        try link.write(settings() + response(1, answer(to: query("a.example", id: 0)), fields))
        guard case .answer(let answer)? = link.events.last else {
            Issue.record("no answer")
            return
        }
        #expect(answer.freshness == AnswerFreshness(age: age, lifetime: life))
    }

    @Test func `half a frame waits, and the end of the stream gives back what has no answer`() throws {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        let all = settings() + response(1, answer(to: query("a.example", id: 0)))
        try link.write(Array(all.dropLast(5)))
        expect(link.events == [.ready])
        link.connection.endOfStream()
        link.run()
        expect(link.events.failures == [1: .closedByServer] && link.events.end == .closedByServer)
        #expect(ConnectionError.closedByServer.isRetryable)
        expect(!link.connection.canTakeMore && link.connection.nextDeadline == nil)
    }

    @Test(arguments: [
        frame(0, stream: 0, [1]), frame(1, flags: 4, stream: 1, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
    ])
    func `what is not HTTP/2 ends the connection`(_ bytes: [UInt8]) throws {
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        try link.write(settings() + bytes)
        expect(link.connection.isOver && link.events.answers.isEmpty && link.events.failures.count == 1)
        guard case .http2 = link.events.end else {
            Issue.record("another end")
            return
        }
    }

    @Test func `a server that asks without end and reads nothing is not answered without end`() throws {
        var limits = ConnectionLimits()
        limits.outgoingByteCount = 4096
        let target = try #require(DoHTarget(authority: "dns.example", path: "/"))
        var connection = try HTTPConnection(PlainStream(), target: target, limits: limits, at: seconds(1))
        connection.receive(settings().span.octets, at: seconds(1))
        let ping = frame(6, [UInt8](repeating: 7, count: 8))
        var count = 0
        while !connection.isOver, count < 10_000 {
            connection.receive(ping.span.octets, at: seconds(1))
            count += 1
        }
        expect(connection.isOver && count > 900 && connection.outgoingCount < 20_000)
        guard case .http2 = connection.takeEvents().end else {
            Issue.record("another end")
            return
        }
    }

    @Test func `cancelled exchanges end without an event, and their streams are reset`() throws {
        let http = ScriptedHTTPServer()
        var link = try link()
        try link.connection.send(query("a.example"), 1)
        link.run()
        try link.write(settings())
        link.connection.cancel(exchange(1), at: seconds(1))
        link.run()
        http.read(link.decrypted)
        #expect(http.frames.contains { $0.type == 3 && $0.stream == 1 && $0.payload == octets(8) })
        try link.write(response(1, answer(to: query("a.example", id: 0))))
        expect(link.events == [.ready] && link.connection.exchangeCount == 0)
    }

    @Test func `a server without HTTP/2 gets no query`() throws {
        let certificates = Certificates.shared
        let target = try #require(DoHTarget(authority: "dns.example", path: "/"))
        var link = Link(
            try DoHConnection(
                certificates.client(certificates.authority(), protocols: ["h2"]), target: target, at: seconds(1)),
            try certificates.server("good", protocols: []))
        try link.connection.send(query("a.example"), 1)
        link.run()
        expect(link.events == [.failed(exchange(1), .noHTTP2), .closed(.noHTTP2)] && link.decrypted.isEmpty)
    }

    @Test(arguments: ["", "dns.example/x", "a@b", "a b"])
    func `what is no authority is refused`(_ authority: String) {
        #expect(DoHTarget(authority: authority, path: "/") == nil)
        #expect(DoHTarget(authority: "a", path: "no-slash") == nil)
        #expect(DoHTarget(authority: "a", path: "/{x}") == nil)
    }
}
