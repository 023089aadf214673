import ByteAccess

extension [UInt8] {
    /// Sixteen bits in network byte order.
    mutating func append(bigEndian value: UInt16) {
        append(UInt8(value >> 8))
        append(UInt8(value & 0xFF))
    }
}
