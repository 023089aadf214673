/// RFC 1071 as its definition says it, a byte at a time, without any of the tricks: the complement is what goes on the wire.
public func referenceSum(_ bytes: [UInt8]) -> UInt16 {
    var sum = 0
    for (offset, byte) in bytes.enumerated() {
        sum += offset % 2 == 0 ? Int(byte) << 8 : Int(byte)
        if sum > 0xFFFF { sum -= 0xFFFF }
    }
    return UInt16(sum)
}
