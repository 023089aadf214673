internal import ByteAccess

/// RFC 7693 section 2.6: the first 32 bits of the fractional parts of the square roots of the first eight primes.
let initialVector = SIMD8<UInt32>(
    0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19)

/// RFC 7693's function F: mixes one 64-byte block into the chain value.
///
/// - Parameters:
///   - total: how many bytes were hashed, with this block.
///   - isFinal: whether this is the last block.
@inline(never)
func compress(_ chain: inout SIMD8<UInt32>, _ bytes: RawSpan, at offset: Int, total: UInt64, isFinal: Bool) {
    // Bounds are checked by the callee; every bit pattern is a valid array of integers.
    let m = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: InlineArray<16, UInt32>.self)
    var state = WorkingVector(chain: chain, total: total, isFinal: isFinal)
    // The rows of RFC 7693 section 2.7, one a round.
    state.round(m, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    state.round(m, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
    state.round(m, 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)
    state.round(m, 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)
    state.round(m, 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)
    state.round(m, 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)
    state.round(m, 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)
    state.round(m, 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)
    state.round(m, 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)
    state.round(m, 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
    chain ^= state.folded
}

/// RFC 7693's local work vector v, in variables so that it lives in registers.
private struct WorkingVector {
    var v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15: UInt32

    @inline(__always)
    init(chain: SIMD8<UInt32>, total: UInt64, isFinal: Bool) {
        (v0, v1, v2, v3) = (chain[0], chain[1], chain[2], chain[3])
        (v4, v5, v6, v7) = (chain[4], chain[5], chain[6], chain[7])
        (v8, v9, v10, v11) = (initialVector[0], initialVector[1], initialVector[2], initialVector[3])
        v12 = initialVector[4] ^ UInt32(truncatingIfNeeded: total)
        v13 = initialVector[5] ^ UInt32(truncatingIfNeeded: total >> 32)
        v14 = isFinal ? ~initialVector[6] : initialVector[6]
        v15 = initialVector[7]
    }

    /// Both halves of the vector, mixed into each other.
    @inline(__always)
    var folded: SIMD8<UInt32> {
        SIMD8(v0 ^ v8, v1 ^ v9, v2 ^ v10, v3 ^ v11, v4 ^ v12, v5 ^ v13, v6 ^ v14, v7 ^ v15)
    }

    /// One round: the columns, then the diagonals, with the message words in the order the round wants.
    @inline(__always)
    mutating func round(
        _ m: borrowing InlineArray<16, UInt32>, _ s0: Int, _ s1: Int, _ s2: Int, _ s3: Int, _ s4: Int, _ s5: Int,
        _ s6: Int, _ s7: Int, _ s8: Int, _ s9: Int, _ s10: Int, _ s11: Int, _ s12: Int, _ s13: Int, _ s14: Int,
        _ s15: Int
    ) {
        mix(&v0, &v4, &v8, &v12, m[s0], m[s1])
        mix(&v1, &v5, &v9, &v13, m[s2], m[s3])
        mix(&v2, &v6, &v10, &v14, m[s4], m[s5])
        mix(&v3, &v7, &v11, &v15, m[s6], m[s7])
        mix(&v0, &v5, &v10, &v15, m[s8], m[s9])
        mix(&v1, &v6, &v11, &v12, m[s10], m[s11])
        mix(&v2, &v7, &v8, &v13, m[s12], m[s13])
        mix(&v3, &v4, &v9, &v14, m[s14], m[s15])
    }
}

/// RFC 7693's function G. The words of the block are little-endian.
@inline(__always)
private func mix(
    _ a: inout UInt32, _ b: inout UInt32, _ c: inout UInt32, _ d: inout UInt32, _ x: UInt32, _ y: UInt32
) {
    a = a &+ b &+ UInt32(littleEndian: x)
    d = (d ^ a).rotatedRight(by: 16)
    c = c &+ d
    b = (b ^ c).rotatedRight(by: 12)
    a = a &+ b &+ UInt32(littleEndian: y)
    d = (d ^ a).rotatedRight(by: 8)
    c = c &+ d
    b = (b ^ c).rotatedRight(by: 7)
}

extension UInt32 {
    /// The bits, moved right by `count` (1 to 31), those that fall out coming in again at the left.
    @inline(__always)
    func rotatedRight(by count: UInt32) -> UInt32 {
        (self &>> count) | (self &<< (32 - count))
    }
}
