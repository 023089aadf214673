internal import IPPacket

/// How many clients may shake hands by TLS at one time. Each of them takes some 50 KiB and a signature, and is nobody yet.
struct HandshakeLimits: Equatable, Sendable {
    /// All together.
    var all = 64
    /// Those of one network that are not the machine's own: an address of IPv4, 64 bits of IPv6, of which a client has all.
    var perClient = 16
}

/// Who clients are to the limits.
enum ClientNetwork: Hashable {
    /// An address.
    case v4(IPv4Address)
    /// The upper half of an address.
    case v6(UInt64)

    /// The network of an address.
    init(of address: IPAddress) {
        switch address {
        case .v4(let address): self = .v4(address)
        case .v6(let address): self = .v6(address.high)
        }
    }
}
