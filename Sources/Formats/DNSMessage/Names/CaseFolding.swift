import ByteAccess

extension UInt8 {
    /// The octet with the ASCII letters A to Z made a to z and all others as they are (RFC 4343 §3).
    var lowercasedASCII: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    /// True for an ASCII letter of either case.
    var isASCIILetter: Bool { (self | 0x20) &- 0x61 < 26 }
}

extension UInt64 {
    /// The eight octets with the ASCII letters A to Z made a to z and all others as they are (RFC 4343 §3).
    @inlinable public var lowercasedASCII: UInt64 {
        let low = self & 0x7F7F_7F7F_7F7F_7F7F
        // The highest bit of each octet says whether its lower seven bits reach A, and whether they are beyond Z.
        let reachesA = low &+ 0x3F3F_3F3F_3F3F_3F3F
        let isBeyondZ = low &+ 0x2525_2525_2525_2525
        let isUppercase = reachesA & ~isBeyondZ & ~self & 0x8080_8080_8080_8080
        return self | isUppercase >> 2
    }
}

extension MutableRawSpan {
    /// Makes the ASCII letters of some bytes lower case.
    mutating func lowercaseASCII(_ range: Range<Int>) {
        var position = range.lowerBound
        while position + 8 <= range.upperBound {
            storeLittleEndian(bytes.littleEndianUInt64(at: position).lowercasedASCII, at: position)
            position += 8
        }
        while position < range.upperBound {
            store(bytes.uint8(at: position).lowercasedASCII, at: position)
            position += 1
        }
    }
}
