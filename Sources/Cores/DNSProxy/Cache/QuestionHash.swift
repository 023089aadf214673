internal import ByteAccess

/// The hash that answers are found by: NH of UMAC (Black et al., CRYPTO 1999; RFC 4418 §5.2.2) over words of 64 bits, with a last
/// multiplication to 64 bits. The keys come from the seed of the standard library's hasher, which nobody outside knows: so nobody can
/// choose names that collide.
struct QuestionHash: Sendable {
    /// A key for each word of the longest question, 259 octets, rounded up to pairs; two more for the end.
    private var keys = InlineArray<36, UInt64>(repeating: 0)

    init() {
        for index in keys.indices {
            var hasher = Hasher()
            hasher.combine(index)
            keys[index] = UInt64(bitPattern: Int64(hasher.finalize()))
        }
    }

    /// The hash of a question on the wire, 5 to 259 octets: letters of both cases have the same.
    @inline(__always)
    func hash(of question: RawSpan, flags: UInt8) -> UInt64 {
        // By way of their span: to read a key itself copies all of them.
        let keys = keys.span
        let count = question.byteCount
        var (low, high): (UInt64, UInt64) = (0, 0)
        var (offset, index) = (0, 0)
        while offset < count {
            let first = question.foldedOctets(at: offset)
            let second = offset + 8 < count ? question.foldedOctets(at: offset + 8) : 0
            let product = (first &+ keys[index]).multipliedFullWidth(by: second &+ keys[index + 1])
            let (sum, isOver) = low.addingReportingOverflow(product.low)
            low = sum
            high &+= product.high &+ (isOver ? 1 : 0)
            offset += 16
            index += 2
        }
        let end = UInt64(UInt(bitPattern: count)) << 8 | UInt64(flags)
        let product = (low &+ keys[34]).multipliedFullWidth(by: (high ^ end) &+ keys[35])
        return product.low ^ product.high
    }
}
