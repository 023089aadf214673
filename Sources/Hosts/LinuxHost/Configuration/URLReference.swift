/// The parts of a URL that configurations have (RFC 3986 §3): a scheme, a host with or without a port, and a path. A query counts as
/// the path's.
struct URLReference {
    /// The scheme in lower case.
    let scheme: String
    /// The host.
    let host: HostReference
    /// The port, when there is one.
    let port: UInt16?
    /// The path with its query: empty, or from its slash on.
    let path: String

    /// The URL that `text` spells; nil for anything else, for names and passwords before the host, and for fragments.
    init?(parsing text: String) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !Self.forbidden.contains($0) }),
            let colon = text.firstIndex(of: ":")
        else { return nil }
        scheme = text[..<colon].lowercased()
        let rest = text[colon...]
        guard rest.hasPrefix("://"),
            scheme.utf8.allSatisfy({ (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || $0 == UInt8(ascii: "5") })
        else { return nil }
        let authority = rest.dropFirst(3)
        let end = authority.firstIndex { $0 == "/" || $0 == "?" } ?? authority.endIndex
        guard let (host, port) = HostReference.split(authority[..<end]) else { return nil }
        self.host = host
        self.port = port
        path = authority[end...].hasPrefix("?") ? "/" + authority[end...] : String(authority[end...])
    }

    /// What has to be escaped in a URL, and the sign of a fragment.
    private static let forbidden = Array("\"<>\\^`{|}#".utf8)
}
