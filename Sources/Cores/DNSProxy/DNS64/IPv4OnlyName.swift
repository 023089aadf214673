internal import ByteAccess
internal import DNSMessage
internal import IPPacket

/// `ipv4only.arpa`, whose two IPv4 addresses everybody knows, so that its IPv6 addresses show the prefix (RFC 7050, RFC 8880).
enum IPv4OnlyName {
    /// The addresses that it has (RFC 7050 §8.2).
    static let addresses = [IPv4Address(192, 0, 0, 170), IPv4Address(192, 0, 0, 171)]
    /// For how many seconds its records may be kept.
    static var timeToLive: UInt32 { 86_400 }
    /// How many labels it has.
    static var labelCount: Int { 2 }

    /// A query for its IPv6 addresses, as one of a client is.
    static let query: [UInt8] =
        [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0] + name + [0, 28, 0, 1]

    private static let name: [UInt8] = [8] + Array("ipv4only".utf8) + [4] + Array("arpa".utf8) + [0]

    /// True for the name and all that is below it.
    static func holds(_ other: borrowing CanonicalName) -> Bool {
        guard other.labelCount >= labelCount else { return false }
        return other.suffix(labelCount).hasSameBytes(as: name.span.octets)
    }
}
