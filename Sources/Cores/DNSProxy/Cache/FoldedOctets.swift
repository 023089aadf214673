internal import ByteAccess
internal import DNSMessage

extension RawSpan {
    /// The eight octets at `offset`, letters in lower case; the last eight when there are not so many there. Of fewer than eight in all,
    /// which are four at least, the first and the last four.
    @inline(__always)
    func foldedOctets(at offset: Int) -> UInt64 {
        guard byteCount >= 8 else {
            let (first, last) = (littleEndianUInt32(at: 0), littleEndianUInt32(at: byteCount - 4))
            return (UInt64(first) | UInt64(last) << 32).lowercasedASCII
        }
        return littleEndianUInt64(at: Swift.min(offset, byteCount - 8)).lowercasedASCII
    }

    /// True when both are questions on the wire that ask the same; the case of letters does not count. Each has five octets at least: a
    /// name, whose length octets are below all letters, a type and a class.
    @inline(__always)
    func isSameQuestion(as other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        // Type and class are numbers: no letters of theirs are folded.
        guard bigEndianUInt32(at: byteCount - 4) == other.bigEndianUInt32(at: byteCount - 4) else { return false }
        var offset = 0
        while offset < byteCount {
            guard foldedOctets(at: offset) == other.foldedOctets(at: offset) else { return false }
            offset += 8
        }
        return true
    }
}
