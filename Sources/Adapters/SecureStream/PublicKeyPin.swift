internal import ByteAccess

/// The SHA-256 hash of a public key with its algorithm (SubjectPublicKeyInfo): RFC 7858 §4.2, RFC 7469 §2.4.
public struct PublicKeyPin: Hashable, Sendable {
    private var words: InlineArray<4, UInt64>

    /// A hash of 32 bytes; nil for any other number.
    public init?(hash: RawSpan) {
        guard hash.byteCount == 32 else { return nil }
        words = InlineArray { hash.bigEndianUInt64(at: 8 * $0) }
    }

    /// Reads `sha256/` and the hash in Base64 with its one equals sign, as configuration has it; the prefix may be missing.
    public init?(parsing text: String) {
        let text = text.hasPrefix("sha256/") ? text.dropFirst(7) : text[...]
        guard text.utf8.count == 44, text.utf8.last == UInt8(ascii: "=") else { return nil }
        var octets = InlineArray<33, UInt8>(repeating: 0)
        var (bits, count, written) = (UInt32(0), 0, 0)
        for character in text.utf8.dropLast() {
            guard let value = Self.base64Value(character) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                octets[written] = UInt8(truncatingIfNeeded: bits >> UInt32(count))
                written += 1
            }
        }
        // 43 characters are 258 bits: two more than a hash has, which are to be zero.
        guard written == 32, bits & 3 == 0 else { return nil }
        self.init(hash: octets.span.octets.extracting(..<32))
    }

    private static func base64Value(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.words[0] == right.words[0] && left.words[1] == right.words[1] && left.words[2] == right.words[2]
            && left.words[3] == right.words[3]
    }

    public func hash(into hasher: inout Hasher) {
        for index in words.indices { hasher.combine(words[index]) }
    }
}

/// Pins for a server: two at least, so that a key can be replaced by one that was pinned before (RFC 7469 §4.3).
public struct PublicKeyPins: Hashable, Sendable {
    private let pins: Set<PublicKeyPin>

    /// The pins; nil when there are fewer than two different ones.
    public init?(_ pins: some Sequence<PublicKeyPin>) {
        self.pins = Set(pins)
        guard self.pins.count >= 2 else { return nil }
    }

    /// True when the key is pinned.
    public func contains(_ pin: PublicKeyPin) -> Bool { pins.contains(pin) }
}
