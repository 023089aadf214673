import ByteAccess
public import IPPacket

/// Packets for a tunnel: UDP with right checksums.
public enum InnerPacket {
    /// A UDP packet from port 1000 to port 2000 with `payload`.
    ///
    /// - Parameters:
    ///   - source: The source address.
    ///   - destination: The destination address, of the same family.
    ///   - trafficClass: DSCP and ECN bits.
    public static func udp(
        from source: IPAddress, to destination: IPAddress, payload: [UInt8], trafficClass: UInt8 = 0
    ) -> [UInt8] {
        let headerLength = source.version == .v4 ? 20 : 40
        let udpLength = 8 + payload.count
        var packet = [UInt8](repeating: 0, count: headerLength + udpLength)
        do {
            var span = packet.mutableSpan
            var bytes = span.mutableOctets
            switch source.version {
            case .v4:
                bytes.store(0x45, at: 0)
                bytes.store(trafficClass, at: 1)
                bytes.storeBigEndian(UInt16(headerLength + udpLength), at: 2)
                bytes.store(64, at: 8)
                bytes.store(IPProtocol.udp.rawValue, at: 9)
                bytes.store(source, at: 12)
                bytes.store(destination, at: 16)
                var sum = InternetChecksum()
                sum.add(bytes.bytes.extracting(0..<20))
                bytes.storeBigEndian(sum.checksum, at: 10)
            case .v6:
                bytes.storeBigEndian(0x6000_0000 | UInt32(trafficClass) << 20, at: 0)
                bytes.storeBigEndian(UInt16(udpLength), at: 4)
                bytes.store(IPProtocol.udp.rawValue, at: 6)
                bytes.store(64, at: 7)
                bytes.store(source, at: 8)
                bytes.store(destination, at: 24)
            }
            bytes.storeBigEndian(1000 as UInt16, at: headerLength)
            bytes.storeBigEndian(2000 as UInt16, at: headerLength + 2)
            bytes.storeBigEndian(UInt16(udpLength), at: headerLength + 4)
            bytes.copy(payload.span.octets, to: headerLength + 8)
            var sum = InternetChecksum(
                pseudoHeaderSource: source, destination: destination, protocol: .udp, length: udpLength)
            sum.add(bytes.bytes.extracting(headerLength..<headerLength + udpLength))
            bytes.storeBigEndian(sum.nonzeroChecksum, at: headerLength + 6)
        }
        return packet
    }

    /// A UDP packet whose payload is `number`, in eight bytes: to tell packets apart.
    public static func numbered(_ number: UInt64, from source: IPAddress, to destination: IPAddress) -> [UInt8] {
        udp(from: source, to: destination, payload: (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) })
    }

    /// The number in a packet that ``numbered(_:from:to:)`` made, whatever its addresses.
    public static func number(of packet: [UInt8]) -> UInt64 {
        packet.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
