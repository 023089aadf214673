/// A key of SipHash-2-4 (Aumasson and Bernstein, 2012): 128 bits that only their owner knows. With it, equal texts have equal
/// hashes, and nobody else can tell which text a hash belongs to by trying all of them.
public struct SipHashKey: Equatable, Sendable {
    private let first: UInt64
    private let second: UInt64

    /// A key of 16 bytes, read as two little-endian words.
    public init(_ first: UInt64, _ second: UInt64) {
        self.first = first
        self.second = second
    }

    /// The hash of the UTF-8 bytes of `text`.
    public func hash(_ text: String) -> UInt64 {
        hash(text.utf8)
    }

    /// The hash of `bytes`.
    public func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var state = State(first, second)
        var word: UInt64 = 0
        var count: UInt64 = 0
        for byte in bytes {
            word |= UInt64(byte) << (8 * (count % 8))
            count += 1
            if count % 8 == 0 {
                state.absorb(word)
                word = 0
            }
        }
        // The last word holds what is left over, and the length in its first byte from the top (paper, section 2.2).
        state.absorb(word | count << 56)
        return state.finish()
    }

    private struct State {
        var v0: UInt64
        var v1: UInt64
        var v2: UInt64
        var v3: UInt64

        init(_ first: UInt64, _ second: UInt64) {
            v0 = first ^ 0x736f_6d65_7073_6575
            v1 = second ^ 0x646f_7261_6e64_6f6d
            v2 = first ^ 0x6c79_6765_6e65_7261
            v3 = second ^ 0x7465_6462_7974_6573
        }

        mutating func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        mutating func finish() -> UInt64 {
            v2 ^= 0xff
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }

        private mutating func round() {
            v0 &+= v1
            v1 = rotate(v1, by: 13) ^ v0
            v0 = rotate(v0, by: 32)
            v2 &+= v3
            v3 = rotate(v3, by: 16) ^ v2
            v0 &+= v3
            v3 = rotate(v3, by: 21) ^ v0
            v2 &+= v1
            v1 = rotate(v1, by: 17) ^ v2
            v2 = rotate(v2, by: 32)
        }

        private func rotate(_ word: UInt64, by count: UInt64) -> UInt64 {
            word << count | word >> (64 - count)
        }
    }
}
