import ByteAccess
import IPPacket

/// Packets to measure with, over IPv4 or IPv6, with right lengths and checksums.
enum TestPackets {
    /// The address of one end of a tunnel.
    static let near = IPAddress.v4(IPv4Address(10, 9, 0, 1))
    /// The address of the other end.
    static let far = IPAddress.v4(IPv4Address(10, 9, 0, 2))

    /// A TCP segment of `length` bytes, headers included, at least 60.
    static func tcp(
        length: Int, from source: IPAddress = near, to destination: IPAddress = far, sequenceNumber: UInt32 = 1
    ) -> [UInt8] {
        packet(.tcp, length: length, from: source, to: destination) { transport in
            transport.zero(from: 0, count: 20)
            transport.storeBigEndian(40_000 as UInt16, at: 0)
            transport.storeBigEndian(443 as UInt16, at: 2)
            transport.storeBigEndian(sequenceNumber, at: 4)
            // Five words of header, ACK, and a window.
            transport.storeBigEndian(0x5010 as UInt16, at: 12)
            transport.storeBigEndian(502 as UInt16, at: 14)
        }
    }

    /// A UDP datagram of `length` bytes, headers included, at least 48.
    static func udp(length: Int, from source: IPAddress = near, to destination: IPAddress = far) -> [UInt8] {
        packet(.udp, length: length, from: source, to: destination) { transport in
            transport.zero(from: 0, count: 8)
            transport.storeBigEndian(40_000 as UInt16, at: 0)
            transport.storeBigEndian(443 as UInt16, at: 2)
            transport.storeBigEndian(UInt16(transport.byteCount), at: 4)
        }
    }

    /// A packet whose transport header `writeTransport` writes, all but its checksum.
    private static func packet(
        _ protocolNumber: IPProtocol, length: Int, from source: IPAddress, to destination: IPAddress,
        _ writeTransport: (inout MutableRawSpan) -> Void
    ) -> [UInt8] {
        var packet = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var span = packet.mutableSpan
        var bytes = span.mutableOctets
        let headerLength = source.version == .v4 ? 20 : 40
        bytes.zero(from: 0, count: headerLength)
        switch source.version {
        case .v4:
            bytes.store(0x45, at: 0)
            bytes.storeBigEndian(UInt16(length), at: 2)
            bytes.store(0x40, at: 6)
            bytes.store(64, at: 8)
            bytes.store(protocolNumber.rawValue, at: 9)
            store(source, at: 12, in: &bytes)
            store(destination, at: 16, in: &bytes)
            var sum = InternetChecksum()
            sum.add(bytes.bytes.extracting(0..<20))
            bytes.storeBigEndian(sum.checksum, at: 10)
        case .v6:
            bytes.store(0x60, at: 0)
            bytes.storeBigEndian(UInt16(length - 40), at: 4)
            bytes.store(protocolNumber.rawValue, at: 6)
            bytes.store(64, at: 7)
            store(source, at: 8, in: &bytes)
            store(destination, at: 24, in: &bytes)
        }
        var transport = bytes.slice(headerLength..<length)
        writeTransport(&transport)
        guard let layout = try? PacketLayout(parsing: bytes.bytes), layout.writeTransportChecksum(in: &bytes) else {
            preconditionFailure("a packet that is none")
        }
        return packet
    }

    private static func store(_ address: IPAddress, at offset: Int, in bytes: inout MutableRawSpan) {
        switch address {
        case .v4(let address):
            bytes.storeBigEndian(address.bits, at: offset)
        case .v6(let address):
            bytes.storeBigEndian(address.high, at: offset)
            bytes.storeBigEndian(address.low, at: offset + 8)
        }
    }
}
