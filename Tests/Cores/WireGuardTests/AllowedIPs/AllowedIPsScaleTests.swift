import IPPacket
import TestSupport
import Testing

@testable import WireGuard

@Suite struct AllowedIPsScaleTests {
    /// What test suites of WireGuard load onto one peer: 255 × 256 IPv4 and as many IPv6 addresses.
    @Test func `130,560 prefixes of one peer are listed in order, found and removed`() {
        let peer = PeerIndex(rawValue: 7)
        var prefixes: [Prefix] = []
        for high in 1...255 as ClosedRange<UInt8> {
            for low in 0...255 as ClosedRange<UInt8> {
                prefixes.append(Prefix(address: ipv4(10, high, low, 0), length: 24))
                prefixes.append(Prefix(address: ipv6(0xABCD << 48 | UInt64(high) << 8 | UInt64(low), 0), length: 64))
            }
        }
        #expect(prefixes.count == 130_560)
        var table = AllowedIPs()
        for prefix in prefixes { table.insert(prefix.address, prefixLength: prefix.length, for: peer) }
        let listed = table.entries(of: peer)
        // Compared first: a failing expectation would print both lists.
        #expect((listed == prefixes) == true)
        let found = prefixes.count { table.peer(for: $0.address) == peer }
        #expect(found == prefixes.count)
        table.removeAll(of: peer)
        let left = prefixes.count { table.peer(for: $0.address) != nil }
        #expect(left == 0)
    }

    @Test func `24,000 peers come, are found and go in any order`() {
        var generator = SeededGenerator(seed: 24_000)
        var table = AllowedIPs()
        let numbers: [UInt32] = Array(0..<24_000)
        func prefixes(_ number: UInt32) -> [Prefix] {
            [
                Prefix(address: .v4(IPv4Address(bits: 0x0A00_0000 | number << 2)), length: 30),
                Prefix(address: ipv6(0xFD00 << 48 | UInt64(number), 0), length: 64),
            ]
        }
        for number in numbers.shuffled(using: &generator) {
            for prefix in prefixes(number) {
                table.insert(prefix.address, prefixLength: prefix.length, for: PeerIndex(rawValue: number))
            }
        }
        var wrong = 0
        for number in numbers {
            for prefix in prefixes(number) where table.peer(for: prefix.address)?.rawValue != number { wrong += 1 }
        }
        #expect(wrong == 0)
        for number in numbers.shuffled(using: &generator) {
            if table.entries(of: PeerIndex(rawValue: number)) != prefixes(number) { wrong += 1 }
            table.removeAll(of: PeerIndex(rawValue: number))
            for prefix in prefixes(number) where table.peer(for: prefix.address) != nil { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    @Test func `places of removed prefixes are used again`() {
        var trie = PrefixTrie<UInt32>()
        // One prefix stays, so that the trie never becomes empty and starts over.
        let kept = trie.insert(0xFFFF_FFFF, length: 32)
        trie[kept].membership.owner = 1
        for round: UInt32 in 1...50 {
            let keys = (0..<100 as Range<UInt32>).map { (round &* 7919 &+ $0) << 8 }
            for key in keys {
                let slot = trie.insert(key, length: 24)
                trie[slot].membership.owner = 1
                // A prefix takes one place, and one more where it parts from its neighbour.
                #expect(slot < 202)
            }
            for key in keys { trie.remove(key, length: 24) }
        }
    }
}
