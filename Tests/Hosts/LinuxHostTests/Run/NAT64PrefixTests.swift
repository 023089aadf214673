import IPPacket
import Testing

@testable import LinuxHost

/// RFC 6052 section 2.4: where 192.0.2.33 is in each network.
private let table: [(prefix: String, length: Int, mapped: String)] = [
    ("2001:db8::", 32, "2001:db8:c000:221::"),
    ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
    ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
    ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
    ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
    ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
    ("64:ff9b::", 96, "64:ff9b::192.0.2.33"),
]

@Suite struct NAT64PrefixTests {
    /// The octets of section 2.2: those of the prefix, then those of the address around octet 8.
    private func embedded(_ octets: [UInt8], in prefix: String, _ length: Int) throws -> IPAddress {
        guard case .v6(let address) = try IPAddress(parsing: prefix) else { return .v6(.unspecified) }
        var bytes = (0..<16).map {
            UInt8(truncatingIfNeeded: ($0 < 8 ? address.high : address.low) >> (8 * (7 - $0 % 8)))
        }
        var place = length / 8
        for octet in octets {
            if place == 8 { place += 1 }
            bytes[place] = octet
            place += 1
        }
        let halves = [bytes[..<8], bytes[8...]].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        return .v6(IPv6Address(high: halves[0], low: halves[1]))
    }

    @Test(arguments: table)
    func addressesAreWhereRFC6052Section24HasThem(prefix: String, length: Int, mapped: String) throws {
        // The table is what our own reading of the octets gives too.
        #expect(try embedded([192, 0, 2, 33], in: prefix, length) == address(mapped))
        for last: UInt8 in [170, 171] {
            let found = NAT64Prefix.find(in: [try embedded([192, 0, 0, last], in: prefix, length)])
            #expect(found?.length == length)
            #expect(found?.address(for: address("192.0.2.33")) == address(mapped))
            #expect(
                found?.address(for: address("255.255.255.255"))
                    == (try embedded([255, 255, 255, 255], in: prefix, length)))
            #expect(found?.address(for: address("0.0.0.0")) == address(prefix))
        }
    }

    /// RFC 7050 section 3: the true addresses come too, and others may.
    @Test func findsThePrefixAmongOthers() throws {
        let prefix = NAT64Prefix.find(in: [
            address("192.0.0.170"), address("2001:db8::1"), address("192.0.0.171"), address("64:ff9b::c000:ab"),
        ])
        #expect(prefix?.length == 96)
        #expect(prefix?.address(for: address("198.51.100.1")) == address("64:ff9b::198.51.100.1"))
    }

    @Test func aNetworkWithoutATranslatorHasNone() {
        #expect(NAT64Prefix.find(in: []) == nil)
        #expect(NAT64Prefix.find(in: [address("192.0.0.170"), address("192.0.0.171")]) == nil)
        #expect(NAT64Prefix.find(in: [address("2001:db8::192.0.0.172"), address("::ffff:192.0.2.1")]) == nil)
    }

    @Test func anIPv6AddressIsReachedAsItIs() {
        let prefix = NAT64Prefix.find(in: [address("64:ff9b::192.0.0.170")])
        #expect(prefix != nil)
        #expect(prefix?.address(for: address("2001:db8::1")) == nil)
    }
}
