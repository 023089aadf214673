import ByteAccess

/// The bytes that hexadecimal digits spell; white space separates nothing.
func hex(_ digits: String) -> [UInt8] {
    let digits = digits.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

extension [UInt8] {
    /// Lets `body` change the bytes in place.
    mutating func edit<Result>(_ body: (inout MutableRawSpan) throws -> Result) rethrows -> Result {
        var span = mutableSpan
        var octets = span.mutableOctets
        return try body(&octets)
    }

    /// Sixteen bits in network byte order.
    mutating func append(bigEndian value: UInt16) {
        append(UInt8(value >> 8))
        append(UInt8(value & 0xFF))
    }
}

/// RFC 1071 as its definition says it, a byte at a time, without any of the tricks: the complement is what goes on the wire.
func referenceSum(_ bytes: [UInt8]) -> UInt16 {
    var sum = 0
    for (offset, byte) in bytes.enumerated() {
        sum += offset % 2 == 0 ? Int(byte) * 256 : Int(byte)
        if sum > 0xFFFF { sum -= 0xFFFF }
    }
    return UInt16(sum)
}
