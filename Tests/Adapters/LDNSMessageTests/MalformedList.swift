import DNSMessage
import FoundationEssentials
import Testing

/// An entry of the lists in Tests/Conformance/dns_malformed, whose form is described in queries.txt.
struct MalformedMessage: Sendable, CustomTestStringConvertible {
    let name: String
    let error: String
    let reply: String
    let bytes: [UInt8]

    var testDescription: String { name }

    /// The entries of a list; none when the file cannot be read, which a test of its own would notice.
    static func list(_ file: String) -> [Self] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Conformance/dns_malformed")
        guard let text = try? String(contentsOf: folder.appending(path: file), encoding: .utf8) else { return [] }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix("#") }
        return lines.split(whereSeparator: \.isEmpty).map { entry in
            var fields: [Substring: String] = [:]
            var key: Substring = ""
            for line in entry {
                if line.hasPrefix(" ") {
                    fields[key, default: ""] += line
                } else if let colon = line.firstIndex(of: ":") {
                    key = line[..<colon]
                    fields[key] = line[line.index(after: colon)...].trimmingPrefix(" ").description
                }
            }
            return Self(
                name: fields["name"] ?? "", error: fields["error"] ?? "", reply: fields["reply"] ?? "",
                bytes: hex(fields["hex"] ?? ""))
        }
    }

    static let queries = list("queries.txt")
    static let answers = list("answers.txt")
}
