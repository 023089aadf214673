import ByteAccess
public import IPPacket

/// A part of the client's address that may reach the server (RFC 7871 §6).
public struct ClientSubnet: Hashable, Sendable, BitwiseCopyable {
    /// The address, zero behind the source prefix. Nil for family 0, in which a client with a prefix of 0 says that nothing about it
    /// is to be told.
    public var address: IPAddress?
    /// SOURCE PREFIX-LENGTH: how many bits of the address are given.
    public var sourcePrefixLength: UInt8
    /// SCOPE PREFIX-LENGTH: for how many bits of it an answer is meant; 0 in queries.
    public var scopePrefixLength: UInt8

    /// A subnet of an address, of which the bits behind the prefix are to be zero already.
    public init(address: IPAddress?, sourcePrefixLength: UInt8, scopePrefixLength: UInt8 = 0) {
        self.address = address
        self.sourcePrefixLength = sourcePrefixLength
        self.scopePrefixLength = scopePrefixLength
    }

    /// Reads an option's value: as many bytes of the address as the prefix needs, its unused bits zero.
    public init(parsing value: RawSpan) throws(DNSMessageError) {
        guard value.byteCount >= 4 else { throw .invalidClientSubnet }
        let family = value.bigEndianUInt16(at: 0)
        sourcePrefixLength = value.uint8(at: 2)
        scopePrefixLength = value.uint8(at: 3)
        let bitWidth: UInt8 =
            switch family {
            case 0: 0
            case 1: 32
            case 2: 128
            default: throw .invalidClientSubnet
            }
        guard sourcePrefixLength <= bitWidth, scopePrefixLength <= bitWidth,
            value.byteCount == 4 + (Int(sourcePrefixLength) + 7) / 8
        else { throw .invalidClientSubnet }
        if sourcePrefixLength % 8 != 0 {
            let unused = UInt8(0xFF) >> (sourcePrefixLength % 8)
            guard value.uint8(at: value.byteCount - 1) & unused == 0 else { throw .invalidClientSubnet }
        }
        var octets = InlineArray<16, UInt8>(repeating: 0)
        for index in 4..<value.byteCount { octets[index - 4] = value.uint8(at: index) }
        let bytes = octets.span.octets
        address =
            switch family {
            case 1: .v4(bytes.ipv4Address(at: 0))
            case 2: .v6(bytes.ipv6Address(at: 0))
            default: nil
            }
    }

    /// The length of the option's value in bytes.
    var valueLength: Int { 4 + (Int(sourcePrefixLength) + 7) / 8 }

    /// Writes the option's value at `offset`.
    func store(into output: inout MutableRawSpan, at offset: Int) {
        var octets = InlineArray<16, UInt8>(repeating: 0)
        var family: UInt16 = 0
        if let address {
            var span = octets.mutableSpan
            var bytes = span.mutableOctets
            bytes.store(address, at: 0)
            family = address.version == .v4 ? 1 : 2
        }
        output.storeBigEndian(family, at: offset)
        output.store(sourcePrefixLength, at: offset + 2)
        output.store(scopePrefixLength, at: offset + 3)
        for index in 0..<min(octets.count, valueLength - 4) { output.store(octets[index], at: offset + 4 + index) }
    }
}
