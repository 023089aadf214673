import CMeasurement
import IPPacket
import WireGuard

/// Finds the peers of addresses, in no order that a processor could learn.
struct AllowedIPsLookUp: ~Copyable, Benchmark {
    let operations = 8192
    private var allowedIPs = AllowedIPs()
    private var addresses: [IPAddress] = []

    /// Tables as of a busy server: `count` peers with a /32 and a /128 each, in networks of 256.
    init(peers count: Int, version: IPVersion) {
        for number in 0..<count {
            let peer = PeerIndex(rawValue: UInt32(number))
            allowedIPs.insert(Self.address(number, .v4), prefixLength: 32, for: peer)
            allowedIPs.insert(Self.address(number, .v6), prefixLength: 128, for: peer)
        }
        var state: UInt64 = 1
        for _ in 0..<1024 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            addresses.append(Self.address(Int(state >> 33) % count, version))
        }
    }

    private static func address(_ number: Int, _ version: IPVersion) -> IPAddress {
        switch version {
        case .v4: .v4(IPv4Address(bits: 0x0A09_0001 &+ UInt32(number)))
        case .v6: .v6(IPv6Address(high: 0xFD00_0000_0000_0000 | UInt64(number >> 8), low: UInt64(number & 0xFF) + 1))
        }
    }

    mutating func run() {
        for index in 0..<operations {
            guard let peer = allowedIPs.peer(for: addresses[index & 1023]) else { preconditionFailure("no peer") }
            measurement_consume(UInt64(peer.rawValue))
        }
    }
}
