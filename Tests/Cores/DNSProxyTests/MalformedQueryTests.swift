import DNSMessage
import DNSProxy
import FoundationEssentials
import Testing

@Suite("Malformed queries")
struct MalformedQueryTests {
    /// Reads the list that Tests/Conformance/dns_malformed/queries.txt describes: name, reply and bytes of each entry.
    private static func entries() throws -> [(name: String, reply: String, bytes: [UInt8])] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Conformance/dns_malformed")
        let text = try String(contentsOf: folder.appending(path: "queries.txt"), encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix("#") }
        return lines.split(whereSeparator: \.isEmpty).map { entry in
            var fields: [Substring: String] = [:]
            var key: Substring = ""
            for line in entry {
                if line.hasPrefix(" ") {
                    fields[key, default: ""] += line
                } else if let colon = line.firstIndex(of: ":") {
                    key = line[..<colon]
                    fields[key] = line[line.index(after: colon)...].filter { $0 != " " }
                }
            }
            let digits = (fields["hex"] ?? "").compactMap(\.hexDigitValue)
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
            return (fields["name"] ?? "", fields["reply"] ?? "", bytes)
        }
    }

    @Test(
        "A6, A11, B4, B6: each malformed query gets the one answer that the list says, or none, and reaches no server")
    func list() throws {
        let codes: [String: ResponseCode] = [
            "FORMERR": .formatError, "NOTIMP": .notImplemented, "BADVERS": .badVersion,
        ]
        var rig = try Rig()
        let entries = try Self.entries()
        #expect(entries.count > 50)
        for (name, reply, bytes) in entries {
            let outcome = rig.ask(bytes, by: .tcp)
            if reply == "drop" {
                guard case .drop = outcome else {
                    Issue.record("\(name) was not dropped")
                    continue
                }
            } else {
                let answer = try outcome.answer
                #expect(answer.code == codes[reply], "\(name)")
                #expect(answer.id == bytes.number(at: 0), "\(name)")
            }
        }
        #expect(rig.begun.isEmpty)
    }
}
