internal import ByteAccess

extension Base64URL {
    /// The bytes that a text stands for; nil unless it is exactly what ``append(_:to:)`` would make of them: without equals signs
    /// (RFC 8484 §6), and with nothing but zeros in the bits that are left over (RFC 4648 §3.5).
    static func decode(_ text: RawSpan) -> [UInt8]? {
        guard text.byteCount % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.byteCount / 4 * 3 + 2)
        var (bits, count) = (UInt32(0), 0)
        for offset in text.byteOffsets {
            guard let value = value(of: text.uint8(at: offset)) else { return nil }
            bits = bits << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
                bits &= 1 << count - 1
            }
        }
        return bits == 0 ? bytes : nil
    }

    private static func value(of character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
