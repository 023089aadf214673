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

    /// The name itself.
    static let domainName: DomainName = {
        guard let view = try? DomainNameView(checking: name.span.octets, at: 0) else {
            preconditionFailure("a name that is written above")
        }
        return DomainName(view)
    }()

    /// The names of its addresses.
    private static let reverseNames = addresses.map { ReverseName.name(of: $0) }
    /// What comes behind the first label of those.
    private static let reverseZone: [UInt8] =
        [1, 0x30, 1, 0x30, 3] + Array("192".utf8) + [7] + Array("in-addr".utf8) + [4] + Array("arpa".utf8) + [0]
    /// How many labels the names of its addresses have.
    static var reverseLabelCount: Int { 6 }

    /// True for the name of one of its addresses.
    static func isOfAddress(_ reverse: DomainName) -> Bool { reverseNames.contains(reverse) }

    /// True for the names of its addresses and all that is below them.
    static func holdsReverse(_ other: borrowing CanonicalName) -> Bool {
        guard other.labelCount >= reverseLabelCount,
            other.suffix(reverseLabelCount - 1).hasSameBytes(as: reverseZone.span.octets)
        else { return false }
        for reverse in reverseNames where other.suffix(reverseLabelCount).hasSameBytes(as: reverse.bytes) {
            return true
        }
        return false
    }

    /// True for the name and all that is below it.
    static func holds(_ other: borrowing CanonicalName) -> Bool {
        guard other.labelCount >= labelCount else { return false }
        return other.suffix(labelCount).hasSameBytes(as: name.span.octets)
    }
}
