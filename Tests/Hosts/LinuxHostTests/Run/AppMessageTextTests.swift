import ByteAccess
import FoundationEssentials
import PacketTunnel
import Provider
import Testing

@testable import LinuxHost

@Suite struct AppMessageTextTests {
    private func message(_ line: String) -> PacketTunnelProvider.AppMessage {
        AppMessageText.message(in: line.utf8Span.span.octets)
    }

    @Test func asksForTheStatus() {
        let atOnce = PacketTunnelProvider.AppMessage.status(after: nil, timeLimit: .seconds(0))
        #expect(message(#"{"status": {}}"#) == atOnce)
        #expect(message(#" { "status" : { } } "#) == atOnce)
        #expect(
            message(#"{"status": {"after": 17, "timeLimitSeconds": 60}}"#)
                == .status(after: 17, timeLimit: .seconds(60)))
        #expect(message(#"{"status": {"after": 0}}"#) == .status(after: 0, timeLimit: .seconds(0)))
    }

    @Test func noTimeLimitIsTooLong() {
        #expect(
            message(#"{"status": {"after": 1, "timeLimitSeconds": 9223372036854775807}}"#)
                == .status(after: 1, timeLimit: .seconds(86_400)))
    }

    @Test(arguments: [
        "", "{}", "[]", "status", "null", #""status""#, #"{"status": 1}"#, #"{"status": []}"#, #"{"Status": {}}"#,
        #"{"status": {}, "more": 1}"#, #"{"status": {"before": 1}}"#, #"{"status": {"after": -1}}"#,
        #"{"status": {"after": 1.5}}"#, #"{"status": {"after": "1"}}"#, #"{"status": {"after": null}}"#,
        #"{"status": {"timeLimitSeconds": -1}}"#, #"{"status": {"after": 9223372036854775808}}"#,
        #"{"status": {}"#, #"{"status": {}}x"#, "\u{0}", #"{"status": {"after": 1e400}}"#,
        String(repeating: "[", count: 4_000),
    ])
    func whatIsNotUnderstoodIsUnknown(line: String) {
        #expect(message(line) == .unknown)
    }

    @Test func bytesThatAreNoTextAreUnknown() {
        let bytes: [UInt8] = [0x7B, 0xFF, 0xFE, 0x7D]
        #expect(AppMessageText.message(in: bytes.span.octets) == .unknown)
    }

    @Test func theClientsRequestIsUnderstood() throws {
        for (revision, expected) in [
            (nil, PacketTunnelProvider.AppMessage.status(after: nil, timeLimit: .seconds(0))),
            (UInt64(Int.max), .status(after: UInt64(Int.max), timeLimit: .seconds(60))),
        ] {
            let line = AppMessageText.statusRequest(after: revision, timeLimitSeconds: 60)
            #expect(line.hasSuffix("\n"))
            #expect(line.utf8.count <= AppMessageText.maximumLength)
            #expect(message(String(line.dropLast())) == expected)
        }
    }

    @Test func aFailureIsALineOfJSON() throws {
        let line = AppMessageText.failure("no \"good\"\nat all")
        #expect(line.filter { $0 == "\n" }.count == 1)
        #expect(
            try JSONDecoder().decode([String: String].self, from: Data(line.utf8)) == ["error": "no \"good\"\nat all"])
    }
}
