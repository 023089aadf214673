import ByteAccess
import DNSMessage
import Glibc
import Testing

@testable import LinuxHost

@Suite struct DNSRequestTests {
    private func request(_ line: String) -> DNSRequest? { DNSRequest(in: line.utf8Span.span.octets) }

    @Test func flushesANameOrAll() throws {
        #expect(request(#"{"flushDNS": {}}"#) == .flush(nil))
        #expect(
            request(#"{"flushDNS": {"name": "WWW.example.com"}}"#) == .flush(try DomainName(parsing: "www.example.com"))
        )
        #expect(request(#"{"flushDNS": {"name": "."}}"#) == .flush(DomainName()))
    }

    @Test(arguments: [
        "", "{}", #"{"flushDNS": 1}"#, #"{"flushDNS": {"name": 1}}"#, #"{"flushDNS": {"name": ""}}"#,
        #"{"flushDNS": {"name": "a..b"}}"#, #"{"flushDNS": {"names": "a"}}"#, #"{"flushDNS": {"name": "a", "x": 1}}"#,
        #"{"flushDNS": {}, "status": {}}"#, #"{"status": {}}"#, #"{"flushDNS": {}}x"#,
    ])
    func whatIsNotUnderstoodIsNone(line: String) {
        #expect(request(line) == nil)
    }

    @Test func aRequestIsALineThatIsUnderstood() throws {
        let odd = try DomainName(parsing: #"a\.b\\\"\000\200.example"#)
        for request in [DNSRequest.flush(nil), .flush(DomainName()), .flush(odd)] {
            let line = request.line
            #expect(line.hasSuffix("\n") && line.filter { $0 == "\n" }.count == 1)
            #expect(self.request(String(line.dropLast())) == request)
        }
    }

    @Test(
        arguments: [
            ("{\"flushed\":12}\n", 12, nil), ("{\"error\":\"there is no DNS proxy\"}\n", nil, "there is no DNS proxy"),
            ("{\"flushed\":\"1\"}\n", nil, nil), ("[]\n", nil, nil), ("{}\n", nil, nil),
        ] as [(String, Int?, String?)])
    func theClientReadsTheAnswer(answer: String, count: Int?, reason: String?) throws {
        try inTemporaryFolder { folder in
            let listener = try listenUNIX("\(folder)/control.sock")
            var client = try StatusClient(path: "\(folder)/control.sock")
            let number = listener.rawValue
            let accepted = FileDescriptor(adopting: try systemCall("accept") { accept(number, nil, nil) })
            try WholeFile.write(Array(answer.utf8), to: accepted)
            do throws(StatusFailure) {
                let flushed = try client.flushDNS(DNSFlushName(parsing: "example.com"))
                #expect(flushed == count)
            } catch {
                #expect(count == nil && error == (reason.map { .refused($0) } ?? .notUnderstood))
            }
        }
    }
}
