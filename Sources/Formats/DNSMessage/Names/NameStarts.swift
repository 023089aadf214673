import ByteAccess

/// Where labels of names begin in a message, as far as pointers reach: in its first 16,384 bytes.
///
/// A pointer has to lead to the name or the end of one that was there before (RFC 1035 §4.1.4). Bytes that are no name could be changed
/// when an answer is kept, as a TTL is: what a client got could be another name than the one that policy has seen.
///
/// - Note: `wordCount` words of 64 bits have room for a message of 64 times as many bytes, and are cleared for each message: short ones,
///   which nearly all are, should not pay for the longest.
struct NameStarts<let wordCount: Int> {
    private var bits = InlineArray<wordCount, UInt64>(repeating: 0)

    /// Checks where the first pointer of a name leads, if it has one; what is there was checked before. Then keeps the name's own places.
    mutating func add(_ name: NameLayout, in message: RawSpan) throws(DNSMessageError) {
        var position = name.offset
        while position < name.endOffset {
            let octet = Int(message.uint8(at: position))
            if octet >= 0xC0 {
                // It leads to before itself, so within the message.
                let target = Int(message.bigEndianUInt16(at: position) & 0x3FFF)
                guard bits[target / 64] >> UInt64(target % 64) & 1 == 1 else { throw .pointerToNoName }
            }
            if position < 64 * wordCount { bits[position / 64] |= 1 << UInt64(position % 64) }
            if octet >= 0xC0 { return }
            position += octet + 1
        }
    }
}
