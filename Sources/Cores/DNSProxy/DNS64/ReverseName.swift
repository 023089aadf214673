internal import ByteAccess
internal import DNSMessage
internal import IPPacket

/// The names under which the names of addresses are (RFC 1035 §3.5, RFC 3596 §2.5).
enum ReverseName {
    /// `ip6.arpa`.
    private static let zone: [UInt8] = [3] + Array("ip6".utf8) + [4] + Array("arpa".utf8) + [0]

    /// The name of an IPv4 address.
    static func name(of address: IPv4Address) -> DomainName {
        let bits = address.bits
        let text = "\(bits & 0xFF).\(bits >> 8 & 0xFF).\(bits >> 16 & 0xFF).\(bits >> 24).in-addr.arpa"
        guard let name = try? DomainName(parsing: text) else {
            preconditionFailure("four numbers and a zone that are no name")
        }
        return name
    }

    /// The name of an address.
    static func name(of address: IPAddress) -> DomainName {
        switch address {
        case .v4(let address): return name(of: address)
        case .v6(let address):
            var text = ""
            for index in 0..<32 {
                let half = index < 16 ? address.low : address.high
                text += String(half >> UInt64(4 * (index & 15)) & 0xF, radix: 16) + "."
            }
            guard let name = try? DomainName(parsing: text + "ip6.arpa") else {
                preconditionFailure("digits and a zone that are no name")
            }
            return name
        }
    }

    /// The IPv6 address that a name in lower case spells out, digit by digit from the last; nil for other names.
    static func address(of name: borrowing CanonicalName) -> IPv6Address? {
        guard name.labelCount == 34, name.suffix(2).hasSameBytes(as: zone.span.octets) else { return nil }
        var address = IPv6Address.unspecified
        for index in 0..<32 {
            let label = name.label(index)
            guard label.byteCount == 1, let digit = label.uint8(at: 0).hexadecimalDigit else { return nil }
            if index < 16 {
                address.low |= UInt64(digit) << UInt64(4 * index)
            } else {
                address.high |= UInt64(digit) << UInt64(4 * index - 64)
            }
        }
        return address
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit in lower case.
    fileprivate var hexadecimalDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
