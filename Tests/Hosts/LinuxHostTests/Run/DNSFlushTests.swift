import Glibc
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct DNSFlushTests {
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
