internal import Glibc

/// What `resolv.conf` says beside its servers, on its way into one that we write (resolv.conf(5)).
struct ResolverText: Equatable {
    /// The domains that incomplete names are tried in: those of the last line that has any counts.
    private(set) var searchDomains: [String] = []
    /// The lines that are neither about servers nor about domains, as they are: `options` and `sortlist`.
    private(set) var otherLines: [String] = []

    /// Reads a file. What is not plain ASCII is passed over: it means nothing to the C library either.
    init(_ bytes: [UInt8]) {
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard line.allSatisfy({ (0x20...0x7E).contains($0) || $0 == 0x09 }) else { continue }
            let text = String(decoding: line, as: UTF8.self)
            let words = text.split { $0 == " " || $0 == "\t" }.map(String.init)
            switch words.first {
            // A keyword that does not begin its line is none.
            case let word? where !text.hasPrefix(word): continue
            case "search": searchDomains = Array(words.dropFirst())
            case "domain": searchDomains = Array(words.dropFirst().prefix(1))
            case "options", "sortlist": otherLines.append(words.joined(separator: " "))
            default: continue
            }
        }
    }

    /// The text of a file with the servers and domains of `resolvers`, and after their domains those of this one.
    ///
    /// - Parameter isReadByResolved: True when systemd-resolved reads the file as well. The domain `.` makes it ask these servers
    ///   about every name, and nobody else; to the C library it says nothing.
    func text(with resolvers: ResolverSettings, isReadByResolved: Bool) -> String {
        var text = resolvers.servers.map { "nameserver \($0.value)\n" }.joined()
        var seen: Set<String> = []
        let domains = resolvers.searchDomains + searchDomains + (isReadByResolved ? ["."] : [])
        let distinct = domains.filter { seen.insert($0).inserted }
        if !distinct.isEmpty { text += "search \(distinct.joined(separator: " "))\n" }
        return text + otherLines.map { "\($0)\n" }.joined()
    }
}
