import ByteAccess

/// What the headers of a packet that could be part of a super-packet say; no bytes of it are kept.
struct JoinableHeaders {
    /// Where the packet is in the buffer.
    let packet: Range<Int>
    /// IPv6 rather than IPv4.
    let isIPv6: Bool
    /// TCP rather than UDP.
    let isTCP: Bool
    /// The length of all headers.
    let headersLength: Int
    /// TCP with PSH or FIN: nothing may follow it in a super-packet.
    let isLast: Bool

    /// The length of the IP header, which has no options or extensions.
    @inline(__always)
    var networkLength: Int { isIPv6 ? 40 : 20 }

    /// Where the TCP or UDP header is in the buffer.
    @inline(__always)
    var transport: Int { packet.lowerBound + networkLength }

    /// How many bytes of payload there are: one at least.
    @inline(__always)
    var payloadLength: Int { packet.count - headersLength }

    /// Reads the headers of the packet at `packet`, which lies within `buffer`; nil when it can be joined with no other. The
    /// checksums are not looked at, but for the forms that splitting would not give back.
    @inline(__always)
    init?(of packet: Range<Int>, in buffer: RawSpan) {
        let start = packet.lowerBound
        guard packet.count >= 28, packet.count <= PacketJoiner.maximumLength else { return nil }
        let protocolNumber: UInt8
        switch buffer.uint8(at: start) {
        case 0x45:
            // Neither fragment nor reserved bit; and a checksum in the form of which there is only one.
            guard Int(buffer.bigEndianUInt16(at: start + 2)) == packet.count,
                buffer.bigEndianUInt16(at: start + 6) & ~0x4000 == 0,
                buffer.bigEndianUInt16(at: start + 10) != 0xFFFF
            else { return nil }
            isIPv6 = false
            protocolNumber = buffer.uint8(at: start + 9)
        case 0x60...0x6F:
            guard packet.count >= 48, Int(buffer.bigEndianUInt16(at: start + 4)) + 40 == packet.count else {
                return nil
            }
            isIPv6 = true
            protocolNumber = buffer.uint8(at: start + 6)
        default: return nil
        }
        let networkLength = isIPv6 ? 40 : 20
        let transport = start + networkLength
        switch protocolNumber {
        case IPProtocol.tcp.rawValue:
            isTCP = true
            guard packet.count > networkLength + 20 else { return nil }
            let length = Int(buffer.uint8(at: transport + 12) >> 4) * 4
            guard length >= 20, networkLength + length < packet.count else { return nil }
            headersLength = networkLength + length
            let flags = TCPFlags(rawValue: buffer.uint8(at: transport + 13))
            guard flags.subtracting([.finish, .push, .echoCongestion]) == .acknowledgment,
                buffer.bigEndianUInt16(at: transport + 16) != 0xFFFF
            else { return nil }
            isLast = !flags.isDisjoint(with: [.finish, .push])
        case IPProtocol.udp.rawValue:
            isTCP = false
            headersLength = networkLength + 8
            guard Int(buffer.bigEndianUInt16(at: transport + 4)) == packet.count - networkLength,
                packet.count > headersLength, buffer.bigEndianUInt16(at: transport + 6) != 0
            else { return nil }
            isLast = false
        default: return nil
        }
        self.packet = packet
    }

    /// True when the checksums of the IPv4 header, and of the TCP or UDP header and payload, are right.
    func haveValidChecksums(in buffer: RawSpan) -> Bool {
        if !isIPv6 {
            var header = InternetChecksum()
            header.add(wordAt: packet.lowerBound, of: buffer)
            header.add(wordAt: packet.lowerBound + 8, of: buffer)
            header.add(word: UInt64(buffer.bigEndianUInt32(at: packet.lowerBound + 16).bigEndian))
            guard header.folded == 0xFFFF else { return false }
        }
        var sum = pseudoHeaderSum(in: buffer)
        sum.add(UInt16(truncatingIfNeeded: packet.upperBound - transport))
        sum.add(buffer.extracting(transport..<packet.upperBound))
        return sum.folded == 0xFFFF
    }

    /// The sum of the pseudo-header without the length.
    @inline(__always)
    func pseudoHeaderSum(in buffer: RawSpan) -> InternetChecksum {
        let start = packet.lowerBound
        var sum = InternetChecksum()
        if isIPv6 {
            for offset in stride(from: 8, to: 40, by: 8) { sum.add(wordAt: start + offset, of: buffer) }
        } else {
            sum.add(wordAt: start + 12, of: buffer)
        }
        sum.add(UInt16(isTCP ? IPProtocol.tcp.rawValue : IPProtocol.udp.rawValue))
        return sum
    }
}

extension InternetChecksum {
    /// Adds the eight bytes at `offset`.
    @inline(__always)
    fileprivate mutating func add(wordAt offset: Int, of buffer: RawSpan) {
        add(word: buffer.bigEndianUInt64(at: offset).bigEndian)
    }
}
