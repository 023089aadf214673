import IPPacket
import TestSupport
import Testing

@testable import WireGuard

/// What a table of prefixes has to do, done the slow way: a list of prefixes as text, all of them looked at every time.
private struct ReferenceTable {
    private var entries: [(bits: String, prefix: Prefix, peer: PeerIndex)] = []

    mutating func insert(_ address: IPAddress, _ length: UInt8, for peer: PeerIndex) {
        let bits = address.bitString.prefix(Int(length) + 1)
        if let index = entries.firstIndex(where: { $0.bits == bits }) {
            if entries[index].peer == peer { return }
            entries.remove(at: index)
        }
        entries.append((String(bits), Prefix(masking: address, length: length), peer))
    }

    mutating func remove(_ address: IPAddress, _ length: UInt8, ifOwnedBy peer: PeerIndex) {
        let bits = address.bitString.prefix(Int(length) + 1)
        entries.removeAll { $0.bits == bits && $0.peer == peer }
    }

    mutating func removeAll(of peer: PeerIndex) {
        entries.removeAll { $0.peer == peer }
    }

    func peer(for address: IPAddress) -> PeerIndex? {
        let bits = address.bitString
        return entries.filter { bits.hasPrefix($0.bits) }.max { $0.prefix.length < $1.prefix.length }?.peer
    }

    func entries(of peer: PeerIndex) -> [Prefix] {
        entries.filter { $0.peer == peer }.map(\.prefix)
    }
}

extension Prefix {
    /// The address's bits as text, cut after the prefix and filled up with zeros.
    fileprivate init(masking address: IPAddress, length: UInt8) {
        let bits = address.bitString.dropFirst()
        let kept = bits.prefix(Int(length)) + String(repeating: "0", count: bits.count - Int(length))
        switch address {
        case .v4: self.init(address: .v4(IPv4Address(bits: UInt32(kept, radix: 2) ?? 0)), length: length)
        case .v6:
            self.init(
                address: ipv6(UInt64(kept.prefix(64), radix: 2) ?? 0, UInt64(kept.suffix(64), radix: 2) ?? 0),
                length: length)
        }
    }
}

extension IPAddress {
    /// The number of the family, and the bits, the most significant one first.
    fileprivate var bitString: String {
        func binary(_ value: some BinaryInteger, _ width: Int) -> String {
            let digits = String(value, radix: 2)
            return String(repeating: "0", count: width - digits.count) + digits
        }
        switch self {
        case .v4(let address): return "4" + binary(address.bits, 32)
        case .v6(let address): return "6" + binary(address.high, 64) + binary(address.low, 64)
        }
    }
}

@Suite struct AllowedIPsReferenceTests {
    @Test(arguments: 0..<12 as Range<UInt64>)
    func `random changes and look-ups fare as with a list that is searched`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var table = AllowedIPs()
        var reference = ReferenceTable()
        for step in 0..<600 {
            let peer = PeerIndex(rawValue: UInt32.random(in: 0..<5, using: &generator))
            let address = Self.address(using: &generator)
            let length = Self.length(for: address, using: &generator)
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<60:
                table.insert(address, prefixLength: length, for: peer)
                reference.insert(address, length, for: peer)
            case 60..<95:
                // Most often a prefix that is there.
                let prefix = reference.entries(of: peer).randomElement(using: &generator)
                let (address, length) = prefix.map { ($0.address, $0.length) } ?? (address, length)
                table.remove(address, prefixLength: length, ifOwnedBy: peer)
                reference.remove(address, length, ifOwnedBy: peer)
            case 95..<98 where step % 3 == 0:
                table.removeAll(of: peer)
                reference.removeAll(of: peer)
            default: break
            }
            for _ in 0..<4 {
                let wanted = Self.address(using: &generator)
                #expect(table.peer(for: wanted) == reference.peer(for: wanted), "step \(step): \(wanted)")
            }
            #expect(table.entries(of: peer) == reference.entries(of: peer), "step \(step)")
        }
        for number: UInt32 in 0..<5 {
            let peer = PeerIndex(rawValue: number)
            #expect(table.entries(of: peer) == reference.entries(of: peer))
            table.removeAll(of: peer)
        }
        #expect(table.peer(for: ipv4(0, 0, 0, 0)) == nil)
        #expect(table.peer(for: ipv6(0, 0)) == nil)
    }

    /// An address out of few enough that prefixes nest and meet again, differing at both ends.
    private static func address(using generator: inout SeededGenerator) -> IPAddress {
        let bits = generator.next()
        if bits & 1 == 0 {
            return .v4(
                IPv4Address(
                    bits: UInt32(bits >> 8 & 3) << 30 | UInt32(bits >> 16 & 0x11) << 12 | UInt32(bits >> 32 & 7)))
        }
        return ipv6(bits >> 8 & 3 << 62 | bits >> 16 & 1, (bits >> 24 & 1) << 63 | bits >> 32 & 7)
    }

    private static func length(for address: IPAddress, using generator: inout SeededGenerator) -> UInt8 {
        switch address {
        case .v4: [0, 1, 2, 8, 16, 20, 29, 30, 31, 32].randomElement(using: &generator) ?? 0
        case .v6: [0, 1, 2, 63, 64, 65, 126, 127, 128].randomElement(using: &generator) ?? 0
        }
    }
}
