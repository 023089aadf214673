import ByteAccess
import Glibc
import IPPacket
import TestSupport
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("0.0.0.0", 0 as UInt32), ("255.255.255.255", 0xFFFF_FFFF), ("192.0.2.1", 0xC000_0201),
        ("10.0.0.255", 0x0A00_00FF),
    ])
    func `IPv4 text and bits correspond`(_ text: String, _ bits: UInt32) throws {
        #expect(try IPv4Address(parsing: text).bits == bits)
        #expect(IPv4Address(bits: bits).description == text)
    }

    @Test(arguments: [
        "", ".", "1", "1.2", "1.2.3", "1.2.3.", "1.2.3.4.", ".1.2.3", "1..2.3", "1.2.3.4.5", "256.1.1.1", "1.1.1.256",
        "01.2.3.4",
        "1.2.3.04", "00.0.0.0", "0x1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "+1.2.3.4", "1.2.3.-4", "1.2.3.4/8", "1.2.3.4\0",
        "99999999999999999999.1.1.1", "१.2.3.4",
    ])
    func `IPv4 text in any other form is refused`(_ text: String) {
        #expect(throws: IPAddressError.invalidIPv4Address) { try IPv4Address(parsing: text) }
    }

    /// The pairs of RFC 5952 §1-5 and RFC 4291 §2.2, with what they must be printed as.
    @Test(arguments: [
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("2001:0db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8::1:0:0:1", "2001:db8::1:0:0:1"), ("2001:db8::0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:0db8::1:0:0:1", "2001:db8::1:0:0:1"), ("2001:DB8:0:0:1::1", "2001:db8::1:0:0:1"),
        ("2001:db8:aaaa:bbbb:cccc:dddd:eeee:0001", "2001:db8:aaaa:bbbb:cccc:dddd:eeee:1"),
        ("2001:db8::aaaa:0:0:1", "2001:db8::aaaa:0:0:1"), ("2001:db8:0:0:0:0:2:1", "2001:db8::2:1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("ABCD:EF01:2345:6789:ABCD:EF01:2345:6789", "abcd:ef01:2345:6789:abcd:ef01:2345:6789"),
        ("2001:DB8:0:0:8:800:200C:417A", "2001:db8::8:800:200c:417a"), ("FF01:0:0:0:0:0:0:101", "ff01::101"),
        ("0:0:0:0:0:0:0:1", "::1"), ("0:0:0:0:0:0:0:0", "::"), ("0:0:0:0:0:0:13.1.68.3", "::13.1.68.3"),
        ("0:0:0:0:0:FFFF:129.144.52.38", "::ffff:129.144.52.38"), ("::FFFF:192.0.2.1", "::ffff:192.0.2.1"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"), ("1::", "1::"),
        ("fe80::", "fe80::"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:0:0:2::", "1:0:0:2::"),
    ])
    func `IPv6 text prints as RFC 5952 wants it`(_ text: String, _ canonical: String) throws {
        #expect(try IPv6Address(parsing: text).description == canonical)
    }

    @Test(arguments: [
        "", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:", ":1:2:3:4:5:6:7", "1::2::3",
        "12345::", "g::",
        "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8", "::1.2.3", "::1.2.3.4.5", "::1.2.3.4:5",
        "1.2.3.4::", "::01.2.3.4",
        "1:2:3:4:5:6:7:1.2.3.4", "::%eth0", "fe80::1%1", "[::1]", "::1 ", " ::1", "::1/128", "::-1", "::.1.2.3",
        "1:2:3:4:5:6.1.2.3",
        "::1\0",
    ])
    func `IPv6 text in any other form is refused`(_ text: String) {
        #expect(throws: IPAddressError.invalidIPv6Address) { try IPv6Address(parsing: text) }
    }

    @Test func `parsing takes exactly the forms that inet_pton takes`() {
        var random = SeededGenerator(seed: 0x5952)
        var accepted = 0
        for _ in 0..<50_000 {
            let text = random.addressLikeText()
            let reference = referenceOctets(AF_INET6, text)
            let ours = (try? IPv6Address(parsing: text)).map { octets(.v6($0)) }
            #expect(ours == reference, "\(text)")
            if ours != nil { accepted += 1 }
            let ipv4Reference = referenceOctets(AF_INET, text)
            let ipv4Ours = (try? IPv4Address(parsing: text)).map { octets(.v4($0)) }
            #expect(ipv4Ours == ipv4Reference, "\(text)")
        }
        #expect(accepted > 5_000)
    }

    @Test func `an address prints as inet_ntop prints it and is read back`() throws {
        var random = SeededGenerator(seed: 4291)
        for _ in 0..<30_000 {
            let address = random.ipv6Address()
            #expect(address.description == referenceText(address))
            #expect(try IPv6Address(parsing: address.description) == address)
            let ipv4 = IPv4Address(bits: random.next())
            #expect(try IPAddress(parsing: IPAddress.v4(ipv4).description) == .v4(ipv4))
        }
    }

    @Test func `kinds of addresses begin and end where the RFCs say`() throws {
        func address(_ text: String) throws -> IPAddress { try IPAddress(parsing: text) }
        for (text, kind) in [
            ("223.255.255.255", nil), ("224.0.0.0", true), ("239.255.255.255", true), ("240.0.0.0", nil),
            ("feff::", nil), ("ff00::", true),
        ] as [(String, Bool?)] {
            #expect(try address(text).isMulticast == (kind ?? false), "\(text)")
        }
        for (text, kind) in [
            ("169.253.255.255", false), ("169.254.0.0", true), ("169.254.255.255", true), ("169.255.0.0", false),
            ("fe7f::", false),
            ("fe80::", true), ("febf:ffff::", true), ("fec0::", false),
        ] {
            #expect(try address(text).isLinkLocal == kind, "\(text)")
        }
        for (text, kind) in [
            ("126.255.255.255", false), ("127.0.0.0", true), ("127.255.255.255", true), ("128.0.0.0", false),
            ("::1", true), ("::2", false),
            ("1::1", false), ("::", false),
        ] {
            #expect(try address(text).isLoopback == kind, "\(text)")
        }
        for (text, kind) in [("0.0.0.0", true), ("0.0.0.1", false), ("::", true), ("::1", false), ("1::", false)] {
            #expect(try address(text).isUnspecified == kind, "\(text)")
        }
        #expect(try IPv4Address(parsing: "255.255.255.255").isBroadcast)
        #expect(try !IPv4Address(parsing: "255.255.255.254").isBroadcast)
        #expect(try IPv4Address(parsing: "255.255.255.254").isReserved)
        #expect(try IPv6Address(parsing: "::ffff:192.0.2.1").mappedIPv4 == IPv4Address(192, 0, 2, 1))
        #expect(try IPv6Address(parsing: "::192.0.2.1").mappedIPv4 == nil)
    }
}

private func octets(_ address: IPAddress) -> [UInt8] {
    var octets = [UInt8](repeating: 0, count: address.bitWidth / 8)
    octets.edit { $0.store(address, at: 0) }
    return octets
}

private func referenceOctets(_ family: Int32, _ text: String) -> [UInt8]? {
    var octets = [UInt8](repeating: 0, count: family == AF_INET ? 4 : 16)
    // inet_pton reads a C string and writes 4 or 16 bytes, which the array has.
    return unsafe inet_pton(family, text, &octets) == 1 ? octets : nil
}

private func referenceText(_ address: IPv6Address) -> String {
    var text = [UInt8](repeating: 0, count: 64)
    // inet_ntop reads 16 bytes and writes at most 46 characters with the zero.
    unsafe text.withUnsafeMutableBytes { buffer in
        _ = unsafe inet_ntop(AF_INET6, octets(.v6(address)), buffer.baseAddress, 64)
    }
    return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
}

extension SeededGenerator {
    /// An address with many zero groups, so that every shape of run comes up.
    fileprivate mutating func ipv6Address() -> IPv6Address {
        func half(_ random: inout SeededGenerator) -> UInt64 {
            (0..<4).reduce(into: 0) { half, _ in
                half =
                    half << 16
                    | ([0, 0, 0xFFFF, 1, UInt64(random.next() as UInt16)].randomElement(using: &random) ?? 0)
            }
        }
        return IPv6Address(high: half(&self), low: half(&self))
    }

    /// A text that is an address about one time in five, and otherwise nearly one.
    fileprivate mutating func addressLikeText() -> String {
        var text =
            switch UInt8.random(in: 0..<4, using: &self) {
            case 0: IPv4Address(bits: next()).description
            case 1: ipv6Address().description
            default:
                (0..<Int.random(in: 0..<14, using: &self)).map { _ in
                    ["::", ":", ":", "0", "1", "00", "ffff", "1a", "FFF", "12345", "1.2.3.4", ".", "255", "%"]
                        .randomElement(using: &self) ?? ""
                }.joined()
            }
        if Bool.random(using: &self), let index = text.indices.randomElement(using: &self) {
            text.replaceSubrange(index...index, with: ["", ":", "0", "g", ".", "::"].randomElement(using: &self) ?? "")
        }
        return text
    }
}
