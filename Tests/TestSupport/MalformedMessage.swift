internal import FoundationEssentials

/// An entry of the lists in Tests/Conformance/dns_malformed, whose form is described in queries.txt.
public struct MalformedMessage: Sendable, CustomStringConvertible {
    /// What is wrong with it, once in its list.
    public let name: String
    /// The case of `DNSMessageError` that reading it throws.
    public let error: String
    /// The response code of the one answer that it gets, `drop` when it gets none.
    public let reply: String
    /// The message.
    public let bytes: [UInt8]

    /// Its name.
    public var description: String { name }

    /// What clients could send.
    public static let queries = list("queries.txt")
    /// What servers could send.
    public static let answers = list("answers.txt")

    /// The entries of a list; none when the file cannot be read, which a test of its own would notice.
    private static func list(_ file: String) -> [Self] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Conformance/dns_malformed")
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
}
