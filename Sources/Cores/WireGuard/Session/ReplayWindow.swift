/// The counters already seen on a session, so that none is accepted twice (RFC 6479): a ring of 8,192 bits, of which
/// one 64-bit word is always being recycled. A counter up to 8,128 below the greatest one is still accepted, once.
///
/// Ask it only after a message proved authentic: it takes every counter it accepts for received.
struct ReplayWindow: ~Copyable {
    /// How far below the greatest accepted counter another may lie.
    static let size: UInt64 = 8192 - 64
    /// The first counter that is never accepted: REJECT-AFTER-MESSAGES, 2^64 - 2^13 - 1.
    static let counterLimit = UInt64.max - (1 << 13)

    /// One bit for every counter of the last 128 words of counters; counter N has bit N % 64 of word N / 64 % 128.
    private var words = InlineArray<128, UInt64>(repeating: 0)
    /// The greatest accepted counter plus one; zero when there is none. Never overflows, thanks to `counterLimit`.
    private var next: UInt64 = 0

    /// An empty window.
    init() {}

    /// Takes note of `counter`.
    ///
    /// - Returns: False when it was accepted before, lies too far back to tell, or has reached `counterLimit`.
    mutating func accept(_ counter: UInt64) -> Bool {
        guard counter < Self.counterLimit else { return false }
        if counter >= next {
            advance(to: counter)
        } else if next - 1 - counter > Self.size {
            return false
        }
        let bit: UInt64 = 1 << (counter & 63)
        let index = Int(truncatingIfNeeded: counter >> 6) & 127
        if words[index] & bit != 0 { return false }
        words[index] |= bit
        return true
    }

    /// Makes `counter` the greatest and clears the words that its ring positions are taken over from.
    private mutating func advance(to counter: UInt64) {
        let newest = counter >> 6
        if next == 0 {
            // Nothing is set yet.
        } else {
            let previous = (next - 1) >> 6
            var cleared = min(newest - previous, 128)
            while cleared > 0 {
                words[Int(truncatingIfNeeded: newest &- (cleared - 1)) & 127] = 0
                cleared -= 1
            }
        }
        next = counter + 1
    }
}
