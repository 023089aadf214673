internal import IPPacket

extension IPAddress {
    /// True for an address of the inside, which a name of the outside has no business to lead to: private, shared, loopback,
    /// link-local and unspecified ones, and IPv6 addresses that have such a one of IPv4 in them.
    var isOfTheInside: Bool {
        switch self {
        case .v4(let address): address.isOfTheInside
        case .v6(let address):
            if let embedded = address.embeddedIPv4 { embedded.isOfTheInside } else { address.isPrivate }
        }
    }
}

extension IPv4Address {
    /// True in 0/8, 10/8, 100.64/10, 127/8, 169.254/16, 172.16/12 and 192.168/16 (RFC 6890 §2.2.2).
    fileprivate var isOfTheInside: Bool {
        switch bits >> 24 {
        case 0, 10, 127: true
        case 100: bits >> 22 == 0x6440 >> 6
        case 169: isLinkLocal
        case 172: bits >> 20 == 0xAC1
        case 192: bits >> 16 == 0xC0A8
        default: false
        }
    }
}

extension IPv6Address {
    /// True for `::`, `::1`, fc00::/7 and fe80::/10, and the old site-local fec0::/10.
    fileprivate var isPrivate: Bool {
        isUnspecified || isLoopback || high >> 57 == 0xFC >> 1 || isLinkLocal || high >> 54 == 0xFEC0 >> 6
    }

    /// The address that a mapped, a compatible or a translated one (RFC 4291 §2.5.5, RFC 6052 §2.1, RFC 8215) holds.
    fileprivate var embeddedIPv4: IPv4Address? {
        if let mapped = mappedIPv4 { return mapped }
        let embedded = IPv4Address(bits: UInt32(truncatingIfNeeded: low))
        if high == 0, low > 0xFFFF, low >> 32 == 0 { return embedded }
        if high == 0x0064_FF9B_0000_0000, low >> 32 == 0 { return embedded }
        if high >> 16 == 0x0064_FF9B_0001 { return embedded }
        return nil
    }
}
