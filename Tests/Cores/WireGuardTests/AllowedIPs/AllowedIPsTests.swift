import IPPacket
import Testing

@testable import WireGuard

@Suite struct AllowedIPsTests {
    private let a = PeerIndex(rawValue: 0)
    private let b = PeerIndex(rawValue: 1)
    private let c = PeerIndex(rawValue: 2)

    @Test func `an empty table knows nobody`() {
        let table = AllowedIPs()
        #expect(table.peer(for: ipv4(10, 0, 0, 1)) == nil)
        #expect(table.peer(for: ipv6(0xFD00 << 48, 1)) == nil)
        #expect(table.entries(of: a) == [])
        #expect(table.entries(of: PeerIndex(rawValue: 1_000_000)) == [])
    }

    @Test func `the longest prefix decides, in whatever order they came`() {
        let prefixes: [(IPAddress, UInt8, PeerIndex)] = [
            (ipv4(192, 168, 4, 0), 24, a), (ipv4(192, 168, 4, 4), 32, b), (ipv4(192, 168, 0, 0), 16, c),
            (ipv4(192, 95, 5, 64), 27, b), (ipv4(0, 0, 0, 0), 0, a), (ipv4(64, 15, 112, 0), 20, c),
        ]
        for rotation in prefixes.indices {
            var table = AllowedIPs()
            for (address, length, peer) in prefixes[rotation...] + prefixes[..<rotation] {
                table.insert(address, prefixLength: length, for: peer)
            }
            #expect(table.peer(for: ipv4(192, 168, 4, 20)) == a)
            #expect(table.peer(for: ipv4(192, 168, 4, 4)) == b)
            #expect(table.peer(for: ipv4(192, 168, 200, 182)) == c)
            #expect(table.peer(for: ipv4(192, 95, 5, 63)) == a)
            #expect(table.peer(for: ipv4(192, 95, 5, 64)) == b)
            #expect(table.peer(for: ipv4(192, 95, 5, 95)) == b)
            #expect(table.peer(for: ipv4(192, 95, 5, 96)) == a)
            #expect(table.peer(for: ipv4(64, 15, 127, 255)) == c)
            #expect(table.peer(for: ipv4(64, 15, 128, 0)) == a)
            #expect(table.peer(for: ipv4(255, 255, 255, 255)) == a)
        }
    }

    @Test func `the families do not see each other`() {
        var table = AllowedIPs()
        table.insert(ipv4(0, 0, 0, 0), prefixLength: 0, for: a)
        #expect(table.peer(for: ipv6(0, 0)) == nil)
        table.insert(ipv6(0, 0), prefixLength: 0, for: b)
        #expect(table.peer(for: ipv4(0, 0, 0, 0)) == a)
        #expect(table.peer(for: ipv6(0, 0)) == b)
        #expect(table.peer(for: ipv6(.max, .max)) == b)
        table.removeAll(of: a)
        #expect(table.peer(for: ipv4(0, 0, 0, 0)) == nil)
        #expect(table.peer(for: ipv6(0, 0)) == b)
    }

    @Test func `full-length prefixes match one address`() {
        var table = AllowedIPs()
        table.insert(ipv6(0x2607_5300_6000_6B00, 0xC05F_0543), prefixLength: 128, for: a)
        table.insert(ipv4(255, 255, 255, 255), prefixLength: 32, for: b)
        table.insert(ipv4(0, 0, 0, 0), prefixLength: 32, for: c)
        #expect(table.peer(for: ipv6(0x2607_5300_6000_6B00, 0xC05F_0543)) == a)
        #expect(table.peer(for: ipv6(0x2607_5300_6000_6B00, 0xC05F_0542)) == nil)
        #expect(table.peer(for: ipv4(255, 255, 255, 255)) == b)
        #expect(table.peer(for: ipv4(255, 255, 255, 254)) == nil)
        #expect(table.peer(for: ipv4(0, 0, 0, 0)) == c)
        #expect(table.peer(for: ipv4(0, 0, 0, 1)) == nil)
    }

    @Test func `bits after the prefix do not count`() {
        var table = AllowedIPs()
        table.insert(ipv4(10, 1, 2, 3), prefixLength: 8, for: a)
        table.insert(ipv4(10, 4, 5, 6), prefixLength: 8, for: a)
        table.insert(ipv6(0xFD00_1234_5678_9ABC, 0xDEF0), prefixLength: 65, for: a)
        #expect(
            table.entries(of: a) == [
                Prefix(address: ipv4(10, 0, 0, 0), length: 8),
                Prefix(address: ipv6(0xFD00_1234_5678_9ABC, 0), length: 65),
            ])
        #expect(table.peer(for: ipv6(0xFD00_1234_5678_9ABC, 0x7FFF << 48)) == a)
        #expect(table.peer(for: ipv6(0xFD00_1234_5678_9ABC, 0x8000 << 48)) == nil)
        table.remove(ipv4(10, 255, 255, 255), prefixLength: 8, ifOwnedBy: a)
        #expect(table.peer(for: ipv4(10, 1, 2, 3)) == nil)
    }

    @Test func `a prefix that another peer is given moves, and only that one`() {
        var table = AllowedIPs()
        for peer in [a, b] {
            table.insert(ipv4(10, 0, 0, 0), prefixLength: 8, for: peer)
            table.insert(ipv4(10, 0, UInt8(peer.rawValue), 0), prefixLength: 24, for: peer)
        }
        #expect(table.entries(of: a) == [Prefix(address: ipv4(10, 0, 0, 0), length: 24)])
        #expect(
            table.entries(of: b) == [
                Prefix(address: ipv4(10, 0, 0, 0), length: 8), Prefix(address: ipv4(10, 0, 1, 0), length: 24),
            ])
        #expect(table.peer(for: ipv4(10, 0, 0, 9)) == a)
        #expect(table.peer(for: ipv4(10, 9, 9, 9)) == b)
    }

    @Test func `only the owner's prefix is removed`() {
        var table = AllowedIPs()
        table.insert(ipv4(10, 0, 0, 0), prefixLength: 8, for: a)
        table.insert(ipv4(10, 1, 0, 0), prefixLength: 16, for: b)
        table.insert(ipv4(10, 128, 0, 0), prefixLength: 16, for: c)
        table.remove(ipv4(10, 0, 0, 0), prefixLength: 8, ifOwnedBy: b)
        table.remove(ipv4(10, 1, 0, 0), prefixLength: 15, ifOwnedBy: b)
        table.remove(ipv4(10, 1, 0, 0), prefixLength: 17, ifOwnedBy: b)
        table.remove(ipv4(11, 1, 0, 0), prefixLength: 16, ifOwnedBy: b)
        table.remove(ipv6(0, 0), prefixLength: 0, ifOwnedBy: b)
        #expect(table.peer(for: ipv4(10, 2, 0, 1)) == a)
        #expect(table.peer(for: ipv4(10, 1, 0, 1)) == b)
        table.remove(ipv4(10, 0, 0, 0), prefixLength: 8, ifOwnedBy: a)
        // Where 10.1.0.0/16 and 10.128.0.0/16 part is a place in the tree, but no prefix of anybody.
        table.remove(ipv4(10, 0, 0, 0), prefixLength: 8, ifOwnedBy: a)
        #expect(table.peer(for: ipv4(10, 2, 0, 1)) == nil)
        #expect(table.peer(for: ipv4(10, 1, 0, 1)) == b)
        #expect(table.peer(for: ipv4(10, 128, 0, 1)) == c)
        #expect(table.entries(of: a) == [])
    }

    @Test func `prefixes are listed in the order in which the peer was given them, both families together`() {
        var table = AllowedIPs()
        let prefixes = [
            Prefix(address: ipv4(192, 0, 2, 0), length: 24), Prefix(address: ipv6(0xFD00 << 48, 0), length: 8),
            Prefix(address: ipv4(10, 0, 0, 0), length: 8), Prefix(address: ipv4(10, 0, 0, 0), length: 9),
            Prefix(address: ipv6(0, 1), length: 128), Prefix(address: ipv4(0, 0, 0, 0), length: 0),
        ]
        for prefix in prefixes { table.insert(prefix.address, prefixLength: prefix.length, for: a) }
        // One that is given again stays where it is.
        table.insert(ipv6(0xFD00 << 48, 0), prefixLength: 8, for: a)
        #expect(table.entries(of: a) == prefixes)
        table.remove(ipv4(10, 0, 0, 0), prefixLength: 8, ifOwnedBy: a)
        table.remove(ipv4(192, 0, 2, 0), prefixLength: 24, ifOwnedBy: a)
        table.remove(ipv4(0, 0, 0, 0), prefixLength: 0, ifOwnedBy: a)
        #expect(table.entries(of: a) == [prefixes[1], prefixes[3], prefixes[4]])
        table.insert(ipv4(192, 0, 2, 0), prefixLength: 24, for: a)
        #expect(table.entries(of: a) == [prefixes[1], prefixes[3], prefixes[4], prefixes[0]])
    }

    @Test func `an entry whose prefix is gone has no successor`() throws {
        var table = AllowedIPs()
        table.insert(ipv4(10, 0, 0, 0), prefixLength: 8, for: a)
        table.insert(ipv6(0, 1), prefixLength: 128, for: a)
        let entries = (table.firstEntry(of: a), table.firstEntry(of: a).flatMap { table.entry(after: $0) })
        let first = try #require(entries.0)
        let second = try #require(entries.1)
        table.remove(ipv4(10, 0, 0, 0), prefixLength: 8, ifOwnedBy: a)
        #expect(table.entry(after: first) == nil)
        table.removeAll(of: a)
        #expect(table.entry(after: first) == nil)
        #expect(table.entry(after: second) == nil)
        table.insert(ipv4(11, 0, 0, 0), prefixLength: 8, for: b)
        #expect(table.entry(after: first) == nil)
    }
}

/// A prefix without its place in a table.
struct Prefix: Hashable {
    var address: IPAddress
    var length: UInt8
}

extension AllowedIPs {
    /// All prefixes of a peer.
    func entries(of peer: PeerIndex) -> [Prefix] {
        var prefixes: [Prefix] = []
        var entry = firstEntry(of: peer)
        while let current = entry {
            prefixes.append(Prefix(address: current.address, length: current.prefixLength))
            entry = self.entry(after: current)
        }
        return prefixes
    }
}

func ipv4(_ first: UInt8, _ second: UInt8, _ third: UInt8, _ fourth: UInt8) -> IPAddress {
    .v4(IPv4Address(bits: [first, second, third, fourth].reduce(0) { $0 << 8 | UInt32($1) }))
}

func ipv6(_ high: UInt64, _ low: UInt64) -> IPAddress {
    .v6(IPv6Address(high: high, low: low))
}
