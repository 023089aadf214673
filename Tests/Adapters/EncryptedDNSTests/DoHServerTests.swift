import ByteAccess
import DNSMessage
import EncryptedDNS
import TestSupport
import Testing

/// The statuses of RFC 8484, and what bounds a client. Requests are written frame by frame, and responses read in the same way.
struct DoHServerTests {
    private static let type = ("content-type", "application/dns-message")
    /// The query of RFC 8484 §4.1.1, for `www.example.com` A, and what stands there for it.
    private static let message: [UInt8] =
        [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 0x77, 0x77, 0x77, 7] + Array("example".utf8) + [3] + Array("com".utf8)
        + [0, 0, 1, 0, 1]
    private static let text = "AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"

    private static func get(_ path: String, method: String = "GET") -> [(String, String)] {
        [(":method", method), (":scheme", "https"), (":authority", "dns.example"), (":path", path)]
    }

    @Test func `the GET and POST requests of the RFC are queries`() throws {
        var peer = try Peer()
        try peer.send(headers(1, end: true, Self.get("/dns-query?dns=\(Self.text)")))
        try peer.send(headers(3, Self.get("/dns-query", method: "POST") + [Self.type]) + data(3, Self.message))
        expect(peer.session.nextEvent() == .query(stream: 1, message: Self.message))
        expect(peer.session.nextEvent() == .query(stream: 3, message: Self.message))
        expect(peer.session.nextEvent() == nil)
        expect(peer.session.counts == counts(queries: 2))
    }

    @Test func `the long GET request of the RFC is a query, too`() throws {
        // RFC 8484 §4.1.1: a.62characterlabel-makes-base64url-distinct-from-standard-base64.example.com
        var peer = try Peer()
        try peer.send(
            headers(
                1, end: true,
                Self.get(
                    "/dns-query?dns=AAABAAABAAAAAAAAAWE-NjJjaGFyYWN0ZXJsYWJlbC1tYWtlcy1iYXNlNjR1cmwtZGlzdGluY3QtZnJvbS1z"
                        + "dGFuZGFyZC1iYXNlNjQHZXhhbXBsZQNjb20AAAEAAQ")))
        guard case .query(1, let message) = peer.session.nextEvent() else {
            Issue.record("no query")
            return
        }
        #expect(message.count == 94)
        #expect(
            name(in: message) == "a.62characterlabel-makes-base64url-distinct-from-standard-base64.example.com")
    }

    @Test(arguments: [
        ("/", "GET", 404), ("/dns-query/x?dns=\(text)", "GET", 404), ("/dns?dns=\(text)", "GET", 404),
        ("/dns-query?dns=\(text)", "HEAD", 405), ("/dns-query?dns=\(text)", "DELETE", 405),
        ("/dns-query?dns=\(text)", "Get", 405), ("/dns-query", "GET", 400), ("/dns-query?", "GET", 400),
        ("/dns-query?dns=", "GET", 400), ("/dns-query?dns", "GET", 400), ("/dns-query?name=\(text)", "GET", 400),
        ("/dns-query?dns=\(text)=", "GET", 400), ("/dns-query?dns=\(text)%3D", "GET", 400),
        ("/dns-query?dns=+\(text.dropFirst())", "GET", 400), ("/dns-query?dns=/\(text.dropFirst())", "GET", 400),
        ("/dns-query?dns=\(text)A", "GET", 400), ("/dns-query?dns=\(text)AB", "GET", 400),
        ("/dns-query?dns=AAABAAABAAAAAAA", "GET", 400), ("/dns-query?dns=\(text)&dns=\(text)", "GET", 400),
        ("/dns-query", "POST", 415),
    ])
    func `what is no query has a status`(path: String, method: String, status: Int) throws {
        var peer = try Peer()
        try peer.send(headers(1, end: true, Self.get(path, method: method)))
        expect(peer.session.nextEvent() == nil)
        let response = try #require(try peer.response(1))
        #expect(response[":status"] == String(status) && response["content-length"] == "0")
        #expect(response["allow"] == (status == 405 ? "GET, POST" : nil))
        #expect(response.isComplete && response.body.isEmpty)
        expect(peer.session.counts == counts(refused: 1) && peer.session.bufferedByteCount == 0)
    }

    @Test(arguments: [
        ("application/dns-message", 12, 0), ("Application/DNS-Message; charset=x", 65_535, 0),
        ("application/dns-message", 11, 400), ("application/dns-message", 0, 400),
        ("application/dns-message", 65_536, 413), ("application/dns-message", 100_000, 413),
        ("application/dns-json", 40, 415), ("text/html", 70_000, 415), ("application/dns-messages", 40, 415),
    ])
    func `bodies are taken by type and length`(type: String, length: Int, status: Int) throws {
        var peer = try Peer()
        try peer.send(headers(1, Self.get("/dns-query", method: "POST") + [("content-type", type)]))
        var rest = [UInt8](repeating: 7, count: length)
        repeat {
            let piece = Array(rest.prefix(16_384))
            rest.removeFirst(piece.count)
            try peer.send(data(1, end: rest.isEmpty, piece))
            // The windows are opened as far as the body is read.
            _ = try peer.response(1)
        } while !rest.isEmpty
        let event = peer.session.nextEvent()
        if status == 0 {
            expect(event == .query(stream: 1, message: [UInt8](repeating: 7, count: length)))
        } else {
            expect(event == nil)
            let response = try peer.response(1)
            #expect(response?[":status"] == String(status))
        }
        expect(peer.session.bufferedByteCount == 0)
    }

    @Test func `an answer has its type, its length and for how long it may be kept`() throws {
        // An alias of 40 seconds to an address of 400.
        let alias: [UInt8] = [0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 40, 0, 2, 0xC0, 16]
        let target: [UInt8] = [0xC0, 16, 0, 1, 0, 1, 0, 0, 1, 0x90, 0, 4, 192, 0, 2, 1]
        let own: [UInt8] = [0xC0, 12] + target.dropFirst(2)
        // An SOA record of 900 seconds with a MINIMUM of 120.
        let authority: [UInt8] =
            [0xC0, 16, 0, 6, 0, 1, 0, 0, 3, 0x84, 0, 22, 0, 0] + [UInt8](repeating: 1, count: 16) + [0, 0, 0, 120]
        let cases: [(flags: UInt8, answers: UInt8, authorities: UInt8, records: [UInt8], age: String)] = [
            (0x80, 2, 0, alias + target, "40"), (0x80, 1, 1, own + authority, "400"),
            (0x80, 0, 1, authority, "120"), (0x83, 0, 1, authority, "120"), (0x80, 0, 0, [], "0"),
            (0x82, 0, 0, [], "0"), (0x85, 0, 0, [], "0"),
        ]
        for (index, one) in cases.enumerated() {
            var peer = try Peer()
            let stream = UInt32(2 * index + 1)
            try peer.send(headers(stream, end: true, Self.get("/dns-query?dns=\(Self.text)")))
            _ = peer.session.nextEvent()
            var answer = Self.message + one.records
            (answer[2], answer[3], answer[7], answer[9]) = (0x81, one.flags, one.answers, one.authorities)
            peer.session.answer(Int32(stream), answer.span.octets)
            let response = try #require(try peer.response(stream))
            #expect(response[":status"] == "200" && response["content-type"] == "application/dns-message")
            #expect(response["content-length"] == String(answer.count) && response.body == answer)
            #expect(response["cache-control"] == "max-age=\(one.age)", "case \(index)")
            expect(peer.session.bufferedByteCount == 0)
        }
    }

    @Test func `a stream that is reset is not answered, and is told of once if its query was out`() throws {
        var peer = try Peer()
        let reset = { (stream: UInt32) in frame(3, stream: stream, octets(8)) }
        try peer.send(headers(1, end: true, Self.get("/dns-query?dns=\(Self.text)")) + reset(1))
        expect(peer.session.nextEvent() == nil)
        try peer.send(headers(3, end: true, Self.get("/dns-query?dns=\(Self.text)")))
        expect(peer.session.nextEvent() == .query(stream: 3, message: Self.message))
        try peer.send(reset(3))
        expect(peer.session.nextEvent() == .abandoned(stream: 3))
        expect(peer.session.nextEvent() == nil)
        peer.session.answer(3, Self.message.span.octets)
        let response = try peer.response(3)
        #expect(response == nil)
        expect(peer.session.bufferedByteCount == 0)
    }

    @Test func `who resets too many streams is sent away`() throws {
        var limits = DoHServerLimits()
        (limits.resetBurst, limits.resetsPerSecond) = (5, 1)
        var peer = try Peer(limits)
        for number in 0..<20 {
            let stream = UInt32(2 * number + 1)
            let request = headers(stream, end: true, Self.get("/dns-query?dns=\(Self.text)"))
            try? peer.send(request + frame(3, stream: stream, octets(8)))
        }
        _ = try peer.response(1)
        #expect(peer.reader.frames.contains { $0.type == 7 })
        expect(peer.session.isOver)
    }

    @Test func `more than may wait is refused as what can be asked again`() throws {
        var limits = DoHServerLimits()
        limits.bufferedByteCount = 1000
        var peer = try Peer(limits)
        for stream: UInt32 in [1, 3, 5] {
            try peer.send(
                headers(stream, Self.get("/dns-query", method: "POST") + [Self.type])
                    + data(stream, end: false, [UInt8](repeating: 7, count: 900)))
        }
        try peer.send(data(1, []))
        expect(peer.session.nextEvent() == .query(stream: 1, message: [UInt8](repeating: 7, count: 900)))
        _ = try peer.response(1)
        let resets = peer.reader.frames.filter { $0.type == 3 }
        // REFUSED_STREAM is 7.
        #expect(resets.map(\.stream) == [5] && resets.map(\.payload) == [octets(7)])
    }

    @Test func `the end is said by GOAWAY, and what was asked before is answered`() throws {
        var peer = try Peer()
        try peer.send(headers(1, end: true, Self.get("/dns-query?dns=\(Self.text)")))
        _ = peer.session.nextEvent()
        peer.session.answer(1, Self.message.span.octets)
        let response = try peer.response(1)
        #expect(response?.isComplete == true)
        peer.session.goAway()
        _ = try peer.response(1)
        let farewell = peer.reader.frames.first { $0.type == 7 }
        #expect(farewell?.payload.prefix(8) == (octets(1) + octets(0))[...])
        expect(peer.session.isOver)
    }

    @Test func `what is no HTTP/2 ends the session`() throws {
        var session = try DoHServerSession(path: "/dns-query")
        #expect(throws: ConnectionError.self) {
            try session.receive(Array("GET / HTTP/1.1\r\nhost: dns.example\r\n\r\n".utf8).span.octets)
        }
    }

    private func counts(queries: UInt64 = 0, refused: UInt64 = 0) -> DoHServerCounts {
        var counts = DoHServerCounts()
        (counts.queries, counts.refused) = (queries, refused)
        return counts
    }
}

/// A client that sends frames as they are written, and reads those of the server.
private struct Peer: ~Copyable {
    var session: DoHServerSession
    /// Both ends speak the same frames: what reads requests reads responses.
    let reader = ScriptedHTTPServer()
    private var sent: [UInt8] = []

    init(_ limits: DoHServerLimits = DoHServerLimits()) throws {
        var session = try DoHServerSession(path: "/dns-query", limits: limits)
        try session.receive((ScriptedHTTPServer.preface + frame(4, [])).span.octets)
        self.session = session
    }

    mutating func send(_ bytes: [UInt8]) throws {
        try session.receive(bytes.span.octets)
    }

    /// What came on a stream until now; nil for nothing.
    mutating func response(_ stream: UInt32) throws -> ScriptedHTTPServer.Request? {
        while true {
            let bytes = try session.takeOutgoing()
            if bytes.isEmpty { break }
            sent += bytes
        }
        reader.read(sent)
        return reader.requests.first { $0.stream == stream }
    }
}
