import ByteAccess

/// Builds whole packets with one UDP datagram each (RFC 768).
public enum UDPPacket {
    /// How many bytes the headers take up in front of the payload.
    public static func headerLength(_ version: IPVersion) -> Int { version == .v4 ? 28 : 48 }

    /// Writes a packet with IP header, UDP header and checksums, and returns its length in bytes. Nil, and nothing written, when the
    /// addresses are of two families, or the packet is longer than 65,535 bytes or than `output`.
    ///
    /// - Parameters:
    ///   - payload: What is in the datagram.
    ///   - source: Where the packet comes from.
    ///   - destination: Where it goes to.
    public static func write(
        _ payload: RawSpan, from source: (address: IPAddress, port: UInt16),
        to destination: (address: IPAddress, port: UInt16), into output: inout MutableRawSpan
    ) -> Int? {
        let version = source.address.version
        let headerLength = headerLength(version)
        let length = headerLength + payload.byteCount
        guard destination.address.version == version, length <= min(output.byteCount, 65_535) else { return nil }
        let transportOffset = headerLength - 8
        let datagramLength = 8 + payload.byteCount
        output.zero(from: 0, count: headerLength)
        output.store(UInt8(version == .v4 ? 0x45 : 0x60), at: 0)
        switch version {
        case .v4:
            output.storeBigEndian(UInt16(length), at: 2)
            // Never fragmented, so that it needs no identification (RFC 6864).
            output.storeBigEndian(0x4000 as UInt16, at: 6)
            output.store(64 as UInt8, at: 8)
            output.store(IPProtocol.udp.rawValue, at: 9)
            output.store(source.address, at: 12)
            output.store(destination.address, at: 16)
            var sum = InternetChecksum()
            sum.add(output.bytes.extracting(..<20))
            output.storeBigEndian(sum.checksum, at: 10)
        case .v6:
            output.storeBigEndian(UInt16(datagramLength), at: 4)
            output.store(IPProtocol.udp.rawValue, at: 6)
            output.store(64 as UInt8, at: 7)
            output.store(source.address, at: 8)
            output.store(destination.address, at: 24)
        }
        output.storeBigEndian(source.port, at: transportOffset)
        output.storeBigEndian(destination.port, at: transportOffset + 2)
        output.storeBigEndian(UInt16(datagramLength), at: transportOffset + 4)
        output.copy(payload, to: headerLength)
        var sum = InternetChecksum(
            pseudoHeaderSource: source.address, destination: destination.address, protocol: .udp,
            length: datagramLength)
        sum.add(output.bytes.extracting(transportOffset..<length))
        output.storeBigEndian(sum.nonzeroChecksum, at: transportOffset + 6)
        return length
    }
}
