internal import IPPacket

/// The prefix by which a network that has only IPv6 reaches IPv4 addresses (RFC 6052), found by a name whose IPv4 addresses
/// everybody knows (RFC 7050).
struct NAT64Prefix: Equatable {
    /// The name.
    static let wellKnownName = "ipv4only.arpa"
    /// Its addresses: 192.0.0.170 and 192.0.0.171 (RFC 7050 section 8.2).
    private static let wellKnownAddresses: Set<UInt32> = [0xC000_00AA, 0xC000_00AB]
    /// The lengths that a prefix can have, the usual one first (RFC 6052 section 2.2).
    private static let lengths = [96, 64, 56, 48, 40, 32]

    private let high: UInt64
    private let low: UInt64
    /// The prefix's length in bits.
    let length: Int

    /// The prefix in addresses of the well-known name; nil when none of them has one.
    static func find(in addresses: [IPAddress]) -> NAT64Prefix? {
        for case .v6(let address) in addresses {
            for length in lengths where wellKnownAddresses.contains(embedded(in: address, length)) {
                return NAT64Prefix(address, length)
            }
        }
        return nil
    }

    private init(_ address: IPv6Address, _ length: Int) {
        high = length >= 64 ? address.high : address.high & ~(UInt64.max >> length)
        low = length == 96 ? address.low & ~0xFFFF_FFFF : 0
        self.length = length
    }

    /// The address by which an IPv4 address is reached; nil for one that is IPv6 already.
    func address(for address: IPAddress) -> IPAddress? {
        guard case .v4(let address) = address else { return nil }
        let bits = UInt64(address.bits)
        // Bits 64 to 71 stay zero: an embedded address goes around them.
        return switch length {
        case 96: .v6(IPv6Address(high: high, low: low | bits))
        case 64: .v6(IPv6Address(high: high, low: bits << 24))
        default: .v6(split(bits))
        }
    }

    /// An address whose prefix is shorter than 64 bits: the embedded one goes around the octet in the middle.
    private func split(_ bits: UInt64) -> IPv6Address {
        let first = (bits << 32) >> UInt64(length)
        let rest = length == 32 ? 0 : (bits << UInt64(88 - length)) & 0x00FF_FFFF_FFFF_FFFF
        return IPv6Address(high: high | first, low: rest)
    }

    private static func embedded(in address: IPv6Address, _ length: Int) -> UInt32 {
        switch length {
        case 96: return UInt32(truncatingIfNeeded: address.low)
        case 64: return UInt32(truncatingIfNeeded: address.low >> 24)
        default:
            let inLow = length - 32
            let first = address.high & (UInt64.max >> UInt64(length))
            let rest = inLow == 0 ? 0 : (address.low << 8) >> UInt64(64 - inLow)
            return UInt32(truncatingIfNeeded: (first << UInt64(inLow)) | rest)
        }
    }
}
