import ByteAccess
import IPPacket
import TestSupport
import Testing

@Suite struct IPPrefixTests {
    @Test(arguments: [
        ("10.0.0.0/8", "10.0.0.0/8"), ("10.1.2.3/8", "10.0.0.0/8"), ("0.0.0.0/0", "0.0.0.0/0"),
        ("255.255.255.255/0", "0.0.0.0/0"),
        ("192.0.2.1", "192.0.2.1/32"), ("192.0.2.255/31", "192.0.2.254/31"), ("::/0", "::/0"), ("ffff::ffff/0", "::/0"),
        ("2001:db8::1", "2001:db8::1/128"), ("2001:db8:ffff:ffff:ffff::/33", "2001:db8:8000::/33"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/63", "ffff:ffff:ffff:fffe::/63"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/64", "ffff:ffff:ffff:ffff::/64"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/65", "ffff:ffff:ffff:ffff:8000::/65"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"),
    ])
    func `a prefix is the range its text lies in`(_ text: String, _ canonical: String) throws {
        let prefix = try IPPrefix(parsing: text)
        #expect(prefix.description == canonical)
        #expect(try IPPrefix(parsing: canonical) == prefix)
    }

    @Test(arguments: [
        ("10.0.0.0/33", IPAddressError.invalidPrefixLength), ("10.0.0.0/", .invalidPrefixLength),
        ("10.0.0.0/08", .invalidPrefixLength),
        ("10.0.0.0/+8", .invalidPrefixLength), ("10.0.0.0/8/8", .invalidPrefixLength),
        ("10.0.0.0/8 ", .invalidPrefixLength),
        ("::/129", .invalidPrefixLength), ("::/99999999999999999999999999", .invalidPrefixLength),
        ("10.0.0/8", .invalidIPv4Address),
        ("/8", .invalidIPv4Address), ("", .invalidIPv4Address), (":/8", .invalidIPv6Address),
        ("10.0.0.0/255.0.0.0", .invalidPrefixLength),
    ])
    func `a text that is no prefix is refused with the part that is wrong`(_ text: String, _ error: IPAddressError) {
        #expect(throws: error) { try IPPrefix(parsing: text) }
    }

    @Test func `a prefix contains exactly the addresses that agree bit by bit`() throws {
        var random = SeededGenerator(seed: 4632)
        for _ in 0..<5_000 {
            let isIPv4 = Bool.random(using: &random)
            let width = isIPv4 ? 32 : 128
            let length = Int.random(in: 0...width, using: &random)
            let base = random.bytes(width / 8)
            var other = base
            let flipped = Int.random(in: 0..<width, using: &random)
            other[flipped / 8] ^= 0x80 >> UInt8(flipped % 8)
            let prefix = IPPrefix(address: address(base), length: UInt8(length))
            #expect(prefix.contains(address(base)))
            #expect(prefix.contains(address(other)) == (flipped >= length))
            #expect(prefix.contains(IPPrefix(host: address(other))) == (flipped >= length))
        }
        #expect(try !IPPrefix(parsing: "0.0.0.0/0").contains(IPAddress(parsing: "::")))
        #expect(try !IPPrefix(parsing: "::/0").contains(IPAddress(parsing: "0.0.0.0")))
        #expect(try IPPrefix(parsing: "10.0.0.0/8").contains(IPPrefix(parsing: "10.0.0.0/8")))
        #expect(try !IPPrefix(parsing: "10.0.0.0/8").contains(IPPrefix(parsing: "10.0.0.0/7")))
    }
}

private func address(_ octets: [UInt8]) -> IPAddress {
    let bytes = octets.span.octets
    return octets.count == 4 ? .v4(bytes.ipv4Address(at: 0)) : .v6(bytes.ipv6Address(at: 0))
}
