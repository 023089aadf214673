internal import ByteAccess
internal import CLinux
internal import Glibc

/// Words that nobody can foresee, from the kernel: drawn many at a time, each given out once.
struct RandomWords: ~Copyable {
    /// The kernel gives up to 256 bytes in one piece, whatever signals come.
    private var words = InlineArray<32, UInt64>(repeating: 0)
    private var leftCount = 0

    /// The next word.
    mutating func next() -> UInt64 {
        if leftCount == 0 { draw() }
        leftCount -= 1
        let word = words[leftCount]
        words[leftCount] = 0
        return word
    }

    /// The next sixteen bits.
    mutating func nextUInt16() -> UInt16 { UInt16(truncatingIfNeeded: next()) }

    private mutating func draw() {
        var span = words.mutableSpan
        var octets = span.mutableOctets
        // The pointer and the length are the span's own.
        let count = unsafe octets.withUnsafeMutableBytes { unsafe getrandom($0.baseAddress, $0.count, 0) }
        // Less cannot be: see above. Without randomness there is no way to go on that is safe.
        precondition(count == 256, "the kernel gives no random numbers")
        leftCount = 32
    }
}
