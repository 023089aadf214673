import ByteAccess
import OpenMetrics
import Testing

@Suite("Requests by HTTP/1")
struct HTTPRequestTests {
    typealias Progress = HTTPRequestReader.Progress

    /// What a reader makes of a text that comes in pieces of a length.
    private func read(_ text: String, pieces length: Int = .max) -> Progress {
        var reader = HTTPRequestReader()
        var progress = Progress.incomplete
        let bytes = Array(text.utf8)
        var start = 0
        while start < bytes.count {
            let end = length > bytes.count - start ? bytes.count : start + length
            progress = reader.take(Array(bytes[start..<end]).span.octets)
            start = end
        }
        return progress
    }

    private func get(_ path: String, _ method: String = "GET") -> Progress {
        .request(HTTPRequest(method: method, path: path))
    }

    private static let host = "Host: localhost:9153\r\n"

    @Test("What clients send is understood, however it is cut", arguments: [1, 2, 3, 7, Int.max])
    func understood(length: Int) {
        let prometheus =
            "GET /metrics HTTP/1.1\r\n\(Self.host)User-Agent: Prometheus/2.42.0\r\n"
            + "Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n"
            + "X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"
        let expected: [(String, Progress)] = [
            (prometheus, get("/metrics")),
            ("GET /metrics HTTP/1.0\r\n\r\n", get("/metrics")),
            // RFC 9112 §2.2: a line may end without the carriage return, and a request may follow an empty line.
            ("GET / HTTP/1.1\nHost: a\n\n", get("/")), ("\r\n\r\nGET / HTTP/1.0\r\n\r\n", get("/")),
            ("HEAD /metrics?x=1&y HTTP/1.1\r\nhOST:a\r\n\r\n", get("/metrics", "HEAD")),
            // RFC 9112 §3.2.2 and §3.2.4, RFC 9110 §5.5.
            ("GET http://localhost/metrics?q HTTP/1.1\r\n\(Self.host)\r\n", get("/metrics")),
            ("GET HTTP://localhost HTTP/1.1\r\n\(Self.host)\r\n", get("/")),
            ("OPTIONS * HTTP/1.1\r\n\(Self.host)\r\n", get("*", "OPTIONS")),
            ("get /a%2Fb HTTP/1.1\r\n\(Self.host)X:\r\nY: \t\u{e9} \r\n\r\n", get("/a%2Fb", "get")),
            // RFC 9112 §2.3: a higher minor version is the same to who knows HTTP/1.1.
            ("GET / HTTP/1.9\r\n\(Self.host)\r\n", get("/")),
            // The body is nobody's business here.
            ("POST /metrics HTTP/1.1\r\n\(Self.host)Content-Length: 3\r\n\r\nabc", get("/metrics", "POST")),
        ]
        for (text, progress) in expected { #expect(read(text, pieces: length) == progress, "\(text.debugDescription)") }
    }

    @Test(
        "What is not in order is refused",
        arguments: [
            "GET\r\n\r\n", "GET /\r\n\r\n", "GET  / HTTP/1.1\r\n\(host)\r\n", "GET / HTTP/1.1 \r\n\(host)\r\n",
            "GET / http/1.1\r\n\(host)\r\n", "GET / HTTP/1\r\n\(host)\r\n", "GET / HTTP/1.1x\r\n\(host)\r\n",
            "GET /\u{e9} HTTP/1.1\r\n\(host)\r\n", "G@T / HTTP/1.1\r\n\(host)\r\n", " GET / HTTP/1.1\r\n\(host)\r\n",
            "GET /\t HTTP/1.1\r\n\(host)\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\(host)\(host)\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\n\(host) folded\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)no colon\r\n\r\n", "GET / HTTP/1.1\r\n\(host): a\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)A: b\u{0}c\r\n\r\n", "GET / HTTP/1.1\r\n\(host)A: b\rc\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n",
        ])
    func refused(text: String) {
        #expect(read(text) == .refused(.badRequest))
        #expect(read(text, pieces: 1) == .refused(.badRequest))
    }

    @Test("Other versions of HTTP are refused as such")
    func versions() {
        #expect(read("GET / HTTP/2.0\r\n\(Self.host)\r\n") == .refused(.versionNotSupported))
        #expect(read("GET / HTTP/0.9\r\n\r\n") == .refused(.versionNotSupported))
        #expect(read("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == .refused(.versionNotSupported))
    }

    @Test("A head that has not ended is waited for")
    func incomplete() {
        let whole = "GET / HTTP/1.1\r\n\(Self.host)\r\n"
        for length in 0..<whole.utf8.count {
            #expect(read(String(decoding: whole.utf8.prefix(length), as: UTF8.self)) == .incomplete)
        }
    }

    @Test("What is too long is refused as soon as it is")
    func tooLong() {
        let target = String(repeating: "a", count: HTTPRequestReader.lineLimit)
        #expect(read("GET /\(target)") == .refused(.targetTooLong))
        #expect(read("GET /\(target.dropLast(20)) HTTP/1.0\r\n\r\n") == get("/\(target.dropLast(20))"))
        let field = "A: \(String(repeating: "b", count: 1_000))\r\n"
        let head = "GET / HTTP/1.0\r\n"
        #expect(read(head + String(repeating: field, count: 8) + "\r\n") == get("/"))
        #expect(read(head + String(repeating: field, count: 9)) == .refused(.headerTooLarge))
        #expect(read(head + String(repeating: "a", count: 9_000)) == .refused(.headerTooLarge))
        #expect(read(String(repeating: "\r\n", count: 4_096)) == .refused(.headerTooLarge))
    }

    @Test("Nothing changes once the head is whole")
    func afterTheEnd() {
        var reader = HTTPRequestReader()
        let request = Array("GET / HTTP/1.0\r\n\r\nGET /other HTTP/1.0\r\n\r\n".utf8)
        #expect(reader.take(request.span.octets) == get("/"))
        #expect(reader.take(request.span.octets) == get("/"))
    }

    @Test("There is one page, for GET and HEAD")
    func responses() {
        func response(_ method: String, _ path: String) -> String {
            HTTPRequest(method: method, path: path).response(pageAt: "/page", contentType: "text/x") { "é\n" }.text
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\nCache-Control: no-store\r\n"
        #expect(response("GET", "/page") == head + "Connection: close\r\n\r\né\n")
        #expect(response("HEAD", "/page") == head + "Connection: close\r\n\r\n")
        #expect(response("GET", "/").hasPrefix("HTTP/1.1 404 Not Found\r\n"))
        #expect(response("GET", "/page/").hasPrefix("HTTP/1.1 404 Not Found\r\n"))
        for method in ["POST", "get", "OPTIONS"] {
            let answer = response(method, "/page")
            #expect(answer.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n"))
            #expect(answer.contains("\r\nAllow: GET, HEAD\r\n"))
        }
    }
}
