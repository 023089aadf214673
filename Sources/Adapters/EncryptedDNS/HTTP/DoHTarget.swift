/// Where queries go on an HTTP server, and how (RFC 8484 §4.1).
public struct DoHTarget: Hashable, Sendable {
    /// How a query is put.
    public enum Method: Hashable, Sendable {
        /// The query is the body.
        case post
        /// The query is a parameter of the path, so that caches on the way can answer.
        case get
    }

    /// Host, and port unless it is 443: what `:authority` says.
    public let authority: String
    /// The path of the resource, with a query part or none.
    public let path: String
    /// How a query is put.
    public let method: Method

    /// A resource; nil when authority or path hold what cannot be in them.
    ///
    /// - Parameter path: Begins with a slash. A template's `{?dns}` at the end is what is meant anyway, and left out.
    public init?(authority: String, path: String, method: Method = .post) {
        let template = "{?dns}"
        let path = path.hasSuffix(template) ? String(path.dropLast(template.count)) : path
        let isVisible = { (character: UInt8) in 0x21...0x7E ~= character }
        guard !authority.isEmpty, authority.utf8.count <= 261, authority.utf8.allSatisfy(isVisible),
            !authority.utf8.contains(UInt8(ascii: "/")), !authority.utf8.contains(UInt8(ascii: "@")),
            path.utf8.first == UInt8(ascii: "/"), path.utf8.count <= 2048, path.utf8.allSatisfy(isVisible),
            !path.utf8.contains(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "#") })
        else { return nil }
        self.authority = authority
        self.path = path
        self.method = method
    }

    /// The path of a GET request for a query.
    func path(asking query: [UInt8]) -> String {
        var text = Array(path.utf8)
        text.append(UInt8(ascii: path.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"))
        text.append(contentsOf: "dns=".utf8)
        Base64URL.append(query, to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

/// Base64 for URLs (RFC 4648 §5), without equals signs at the end, as RFC 8484 §6 wants it.
enum Base64URL {
    static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        var (bits, count) = (UInt32(0), UInt32(0))
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(character(bits >> count & 63))
            }
        }
        if count > 0 { text.append(character(bits << (6 - count) & 63)) }
    }

    private static func character(_ value: UInt32) -> UInt8 {
        let value = UInt8(truncatingIfNeeded: value)
        return switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + value - 26
        case 52..<62: UInt8(ascii: "0") + value - 52
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }
}
