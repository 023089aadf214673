import ByteAccess
import IPPacket
import Testing

@Suite struct UDPPacketTests {
    private func packet(_ payload: [UInt8], from source: String, to destination: String, room: Int) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0xEE, count: room)
        var span = bytes.mutableSpan
        var output = span.mutableOctets
        let count = UDPPacket.write(
            payload.span.octets, from: (try IPAddress(parsing: source), 53),
            to: (try IPAddress(parsing: destination), 40_000), into: &output)
        return count.map { Array(bytes[..<$0]) }
    }

    /// Both packets were put together by a program of a few lines in another language, from RFC 791, 768, 8200 and 1071.
    @Test(arguments: [
        ("192.0.2.53", "198.51.100.7", "450000230000400040114e5ac0000235c633640700359c40000f09af736c7569636521"),
        (
            "2001:db8::53", "2001:db8::7",
            "60000000000f114020010db800000000000000000000005320010db800000000000000000000000700359c40000f9a53"
                + "736c7569636521"
        ),
    ])
    func `a packet is what the RFCs say, byte for byte`(_ source: String, _ destination: String, _ hex: String) throws {
        let expected = stride(from: 0, to: hex.utf8.count, by: 2).map { offset in
            UInt8(hex.dropFirst(offset).prefix(2), radix: 16) ?? 0
        }
        let bytes = try packet(Array("sluice!".utf8), from: source, to: destination, room: 100)
        #expect(bytes == expected)
        #expect(try PacketLayout(parsing: expected.span.octets).transportChecksum(of: expected.span.octets) == .valid)
    }

    @Test func `what does not fit is not written`() throws {
        let payload = [UInt8](repeating: 7, count: 100)
        #expect(try packet(payload, from: "192.0.2.1", to: "192.0.2.2", room: 127) == nil)
        #expect(try packet(payload, from: "192.0.2.1", to: "192.0.2.2", room: 128)?.count == 128)
        #expect(try packet(payload, from: "192.0.2.1", to: "2001:db8::1", room: 500) == nil)
        let longest = [UInt8](repeating: 7, count: 65_535 - 28)
        #expect(try packet(longest, from: "192.0.2.1", to: "192.0.2.2", room: 70_000)?.count == 65_535)
        #expect(try packet(longest + [7], from: "192.0.2.1", to: "192.0.2.2", room: 70_000) == nil)
    }
}
