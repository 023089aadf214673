internal import IPPacket

/// The names of hosts and domains as text.
public enum HostName {
    /// True when `name` can be the name of a host or domain: labels of 1 to 63 letters, digits, hyphens and underscores with dots
    /// between them, 253 in all at most, maybe a dot at the end (RFC 1123 §2.1; underscores are common). The last label is not all
    /// digits, because such a name is a mistyped address.
    public static func isValid(_ name: some StringProtocol) -> Bool {
        var labels = Array(name.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        guard name.utf8.count <= 254, let last = labels.last else { return false }
        for label in labels {
            guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-"),
                label.allSatisfy(isNameByte)
            else { return false }
        }
        return !last.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    /// A valid name in lower case, without a dot at its end.
    public static func canonical(_ name: some StringProtocol) -> String {
        let lowercase = name.lowercased()
        return lowercase.hasSuffix(".") ? String(lowercase.dropLast()) : lowercase
    }

    /// True when `text` is an IPv6 address, maybe with `%` and the interface that it is on.
    static func isScopedIPv6Address(_ text: Substring) -> Bool {
        let percent = text.firstIndex(of: "%") ?? text.endIndex
        guard (try? IPv6Address(parsing: text[..<percent])) != nil else { return false }
        if percent == text.endIndex { return true }
        // An interface's name or number (RFC 4007 §11).
        let zone = text[text.index(after: percent)...].utf8
        return (1...15).contains(zone.count) && zone.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
