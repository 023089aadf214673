internal import ByteAccess
public import WireGuard

/// 32 bytes as text: base64 with its padding (RFC 4648 §4), the way WireGuard's keys are written.
///
/// Both directions take the same steps whatever the bytes are, because they may be secret.
public enum KeyText {
    /// The number of characters.
    public static let characterCount = 44

    /// The 32 bytes that `text` stands for; nil when it is anything but 44 characters with one padding character and no bits to
    /// spare.
    public static func decode(_ text: RawSpan) -> SecretMemory? {
        guard text.byteCount == characterCount, text.uint8(at: characterCount - 1) == UInt8(ascii: "=") else {
            return nil
        }
        var memory = SecretMemory(byteCount: SecretKey.byteCount)
        var output = memory.mutableBytes
        var valid: Int32 = -1
        var (bits, bitCount, next): (Int32, Int32, Int) = (0, 0, 0)
        for offset in 0..<characterCount - 1 {
            let (value, isValid) = sextet(of: Int32(text.uint8(at: offset)))
            valid &= isValid
            bits = (bits << 6 | value) & 0xFFFF
            bitCount += 6
            // When a byte is complete depends on the position alone.
            if bitCount >= 8 {
                bitCount -= 8
                output.store(UInt8(truncatingIfNeeded: bits >> bitCount), at: next)
                next += 1
            }
        }
        let bitsToSpare = bits & 0b11
        guard valid == -1, bitsToSpare == 0 else { return nil }
        return memory
    }

    /// Writes the text of the 32 bytes `key` to `output` from `offset`. Traps when it does not fit.
    public static func encode(_ key: RawSpan, into output: inout MutableRawSpan, at offset: Int) {
        precondition(key.byteCount == SecretKey.byteCount, "a key has 32 bytes")
        var (bits, bitCount, next): (Int32, Int32, Int) = (0, 0, 0)
        for index in 0..<characterCount - 1 {
            if bitCount < 6 {
                let byte = next < key.byteCount ? key.uint8(at: next) : 0
                bits = (bits << 8 | Int32(byte)) & 0xFFFF
                bitCount += 8
                next += 1
            }
            bitCount -= 6
            output.store(character(for: bits >> bitCount & 0x3F), at: offset + index)
        }
        output.store(UInt8(ascii: "="), at: offset + characterCount - 1)
    }

    /// All bits when `value` is in `first...last`, otherwise none.
    private static func mask(_ value: Int32, _ first: Unicode.Scalar, _ last: Unicode.Scalar) -> Int32 {
        ((Int32(first.value) - 1 - value) & (value - Int32(last.value) - 1)) >> 31
    }

    /// The six bits that a character stands for, and all bits when it stands for any.
    private static func sextet(of character: Int32) -> (value: Int32, isValid: Int32) {
        let upper = mask(character, "A", "Z")
        let lower = mask(character, "a", "z")
        let digit = mask(character, "0", "9")
        let plus = mask(character, "+", "+")
        let slash = mask(character, "/", "/")
        let letter = upper & (character - 65) | lower & (character - 97 + 26)
        let value = letter | digit & (character - 48 + 52) | plus & 62 | slash & 63
        return (value, upper | lower | digit | plus | slash)
    }

    /// The character that stands for six bits.
    private static func character(for value: Int32) -> UInt8 {
        // Every step adds the distance to the next run of characters once the value has reached it.
        var character = value + 65
        character += (25 - value) >> 31 & (97 - 65 - 26)
        character += (51 - value) >> 31 & (48 - 97 - 26)
        character += (61 - value) >> 31 & (43 - 48 - 10)
        character += (62 - value) >> 31 & (47 - 43 - 1)
        return UInt8(truncatingIfNeeded: character)
    }
}
