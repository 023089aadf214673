import ByteAccess

extension [UInt8] {
    /// The bytes that pairs of hexadecimal digits stand for; white space between them does not count.
    init(hexadecimal text: String) {
        let digits = text.filter { !$0.isWhitespace }.map { digit in
            guard let value = digit.hexDigitValue else { fatalError("no hexadecimal digit: \(digit)") }
            return UInt8(value)
        }
        precondition(digits.count.isMultiple(of: 2), "half a byte")
        self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    /// The bytes that `write` leaves in a span of `count` bytes.
    init(count: Int, write: (inout MutableRawSpan) -> Void) {
        self.init(repeating: 0xEE, count: count)
        var span = self.mutableSpan
        var bytes = span.mutableOctets
        write(&bytes)
    }

    /// The array's bytes.
    var octets: RawSpan {
        @_lifetime(borrow self)
        get { span.octets }
    }
}

/// SplitMix64: the same numbers for the same seed, so that a failing test fails again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// `count` random bytes.
    mutating func bytes(_ count: Int) -> [UInt8] {
        var generator = self
        defer { self = generator }
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
