internal import IPPacket

/// The prefix behind which a translator finds IPv4 addresses (RFC 6052 §2.2).
///
/// The four octets of the address follow the prefix, but for octet 8 of the whole, which is zero and passed over.
struct TranslationPrefix: Equatable, Sendable, BitwiseCopyable {
    /// The prefix: of 32, 40, 48, 56, 64 or 96 bits, and with octet 8 zero.
    let prefix: IPPrefix
    private let base: IPv6Address

    /// Nil when it is no prefix that IPv4 addresses can be put behind.
    init?(_ prefix: IPPrefix) {
        guard case .v6(let address) = prefix.address, address.low >> 56 == 0 else { return nil }
        switch prefix.length {
        case 32, 40, 48, 56, 64, 96: break
        default: return nil
        }
        self.prefix = prefix
        base = address
    }

    /// True for 64:ff9b::/96, which must not lead to addresses that are not of the whole Internet (RFC 6052 §3.1).
    var isWellKnown: Bool { prefix.length == 96 && base == IPv6Address(high: 0x0064_FF9B_0000_0000, low: 0) }

    /// The address that is translated to an IPv4 address; what is behind it is zero.
    func address(of address: IPv4Address) -> IPv6Address {
        var made = base
        for index in 0..<4 {
            let octet = UInt64(address.bits >> UInt32(24 - 8 * index) & 0xFF)
            let position = position(of: index)
            if position < 8 {
                made.high |= octet << UInt64(56 - 8 * position)
            } else {
                made.low |= octet << UInt64(120 - 8 * position)
            }
        }
        return made
    }

    /// The IPv4 address that an address is translated to; nil when it is not below the prefix, or octet 8 is not zero. What is behind
    /// it does not count.
    func embedded(in address: IPv6Address) -> IPv4Address? {
        guard prefix.contains(.v6(address)), address.low >> 56 == 0 else { return nil }
        var bits: UInt32 = 0
        for index in 0..<4 {
            let position = position(of: index)
            let octet =
                position < 8 ? address.high >> UInt64(56 - 8 * position) : address.low >> UInt64(120 - 8 * position)
            bits = bits << 8 | UInt32(truncatingIfNeeded: octet & 0xFF)
        }
        return IPv4Address(bits: bits)
    }

    /// Where an octet of the IPv4 address is among the sixteen.
    private func position(of index: Int) -> Int {
        let position = Int(prefix.length) / 8 + index
        return prefix.length < 96 && position >= 8 ? position + 1 : position
    }
}
