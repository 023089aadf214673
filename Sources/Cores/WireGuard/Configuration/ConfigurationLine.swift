import ByteAccess
import IPPacket

/// One `key=value` line of the configuration protocol, without its end.
struct ConfigurationLine: ~Escapable {
    let key: RawSpan
    let value: RawSpan

    @_lifetime(copy line)
    init(_ line: RawSpan) throws(ConfigurationError) {
        var offset = 0
        while offset < line.byteCount, line.uint8(at: offset) != UInt8(ascii: "=") { offset += 1 }
        guard offset < line.byteCount else { throw .malformedLine }
        key = line.extracting(0..<offset)
        value = line.extracting(offset + 1..<line.byteCount)
    }

    /// True when the key is `name`.
    func isKey(_ name: String) -> Bool {
        key.hasSameBytes(as: name.utf8Span.span.octets)
    }

    /// The value of a key that is only ever switched on.
    func requireTrue() throws(ConfigurationError) {
        guard value.hasSameBytes(as: "true".utf8Span.span.octets) else { throw .invalidValue }
    }

    /// The value as a decimal number of digits only, no greater than `maximum`.
    func number(upTo maximum: UInt64) throws(ConfigurationError) -> UInt64 {
        guard !value.isEmpty, value.byteCount <= 10 else { throw .invalidValue }
        var number: UInt64 = 0
        for offset in value.byteOffsets {
            let digit = value.uint8(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { throw .invalidValue }
            number = number * 10 + UInt64(digit)
        }
        guard number <= maximum else { throw .invalidValue }
        return number
    }

    /// Reads the value as a key of 32 bytes in 64 hexadecimal digits.
    func readKey(into output: inout SecretMemory) throws(ConfigurationError) {
        guard value.byteCount == 2 * PublicKey.byteCount, output.byteCount == PublicKey.byteCount else {
            throw .invalidValue
        }
        var bytes = output.mutableBytes
        for index in 0..<PublicKey.byteCount {
            guard let high = Self.hexadecimalDigit(value.uint8(at: 2 * index)),
                let low = Self.hexadecimalDigit(value.uint8(at: 2 * index + 1))
            else { throw .invalidValue }
            bytes.store(high << 4 | low, at: index)
        }
    }

    /// The value as text. Not for secrets.
    func text() throws(ConfigurationError) -> String {
        guard value.byteCount <= 128 else { throw .invalidValue }
        var text = ""
        for offset in value.byteOffsets {
            let byte = value.uint8(at: offset)
            guard byte > 0x20, byte < 0x7f else { throw .invalidValue }
            text.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return text
    }

    private static func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
