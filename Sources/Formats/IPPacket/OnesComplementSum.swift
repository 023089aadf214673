/// The sum of the bytes as words in memory order, modulo 2⁶⁴ − 1; an odd rest counts as followed by zeros.
func onesComplementSum(_ bytes: RawSpan) -> UInt64 {
    unsafe bytes.withUnsafeBytes { buffer in
        guard let start = buffer.baseAddress else { return 0 }
        // All of the buffer, nothing written.
        return unsafe onesComplementSum(from: start, to: nil, count: buffer.count)
    }
}

extension MutableRawSpan {
    /// Copies all of `source` to `offset` and returns its sum, as `onesComplementSum` has it, in one pass. The two must not
    /// overlap. Traps when it does not fit.
    mutating func copySumming(_ source: RawSpan, to offset: Int) -> UInt64 {
        precondition(offset >= 0 && source.byteCount <= byteCount - offset, "copy beyond the end of a span")
        return unsafe withUnsafeMutableBytes { destination in
            unsafe source.withUnsafeBytes { source in
                guard let from = source.baseAddress, let to = destination.baseAddress else { return 0 }
                // In bounds by the precondition above.
                return unsafe onesComplementSum(from: from, to: to + offset, count: source.count)
            }
        }
    }
}

/// Sums, and copies when there is a destination, `count` bytes, 64 at a time.
///
/// A vector unit has no carries. So the sum of the words modulo 2⁶⁴ is kept beside the sum of their high halves, from which
/// the sum of the low halves follows: neither can overflow before 2³² words.
@inline(__always)
private func onesComplementSum(
    from source: UnsafeRawPointer, to destination: UnsafeMutableRawPointer?, count: Int
) -> UInt64 {
    var sum = InternetChecksum()
    var offset = 0
    if count >= 64 {
        var words = SIMD8<UInt64>(repeating: 0)
        var highHalves = SIMD8<UInt64>(repeating: 0)
        repeat {
            // In bounds: 64 bytes are left at `offset`.
            let block = unsafe source.loadUnaligned(fromByteOffset: offset, as: SIMD8<UInt64>.self)
            if let destination = unsafe destination {
                unsafe destination.storeBytes(of: block, toByteOffset: offset, as: SIMD8<UInt64>.self)
            }
            words &+= block
            highHalves &+= block &>> SIMD8(repeating: 32)
            offset += 64
        } while count - offset >= 64
        let lowHalves = words &- (highHalves &<< SIMD8(repeating: 32))
        sum.add(word: lowHalves.wrappedSum())
        let high = highHalves.wrappedSum()
        sum.add(word: high << 32 | high >> 32)
    }
    while count - offset >= 8 {
        // In bounds: eight bytes are left at `offset`.
        let word = unsafe source.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        if let destination = unsafe destination {
            unsafe destination.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
        }
        sum.add(word: word)
        offset += 8
    }
    // At most seven bytes: as the first of a word whose others are zero, put together with the first in the lowest place.
    let rest = count - offset
    var last: UInt64 = 0
    var filled: UInt64 = 0
    if rest & 4 != 0 {
        // In bounds, as the next two: of `rest` bytes these are the first four, those behind them two and one.
        let word = unsafe source.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        if let destination = unsafe destination {
            unsafe destination.storeBytes(of: word, toByteOffset: offset, as: UInt32.self)
        }
        last = UInt64(UInt32(littleEndian: word))
        filled = 32
        offset += 4
    }
    if rest & 2 != 0 {
        let word = unsafe source.loadUnaligned(fromByteOffset: offset, as: UInt16.self)
        if let destination = unsafe destination {
            unsafe destination.storeBytes(of: word, toByteOffset: offset, as: UInt16.self)
        }
        last |= UInt64(UInt16(littleEndian: word)) &<< filled
        filled += 16
        offset += 2
    }
    if rest & 1 != 0 {
        let byte = unsafe source.load(fromByteOffset: offset, as: UInt8.self)
        if let destination = unsafe destination {
            unsafe destination.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
        }
        last |= UInt64(byte) &<< filled
    }
    sum.add(word: UInt64(littleEndian: last))
    return sum.sum
}
