import ByteAccess

/// Changes of messages in place, without an allocation and without writing anew what stays.
public enum MessageEditing {
    /// Sets the ID. Traps when there is no header.
    public static func setID(_ id: UInt16, in message: inout MutableRawSpan) {
        message.storeBigEndian(id, at: 0)
    }

    /// The bits, opcode and response code of the header. Traps when there is no header.
    public static func flags(of message: borrowing MutableRawSpan) -> DNSFlags {
        DNSFlags(rawValue: message.bytes.bigEndianUInt16(at: 2))
    }

    /// Sets the bits, opcode and response code of the header. Traps when there is no header.
    public static func setFlags(_ flags: DNSFlags, in message: inout MutableRawSpan) {
        message.storeBigEndian(flags.rawValue, at: 2)
    }

    /// Writes the letters of a question's name as another message of the same question has them: so that a stored answer shows each
    /// client its own, and owners that point to the question show them too.
    ///
    /// - Returns: False, and nothing is changed, when the message does not ask the same.
    public static func copyQuestionCase(
        from question: borrowing QuestionView, in message: inout MutableRawSpan
    ) throws(DNSMessageError) -> Bool {
        let layout = try QuestionLayout(checking: message.bytes)
        if question.layout.endOffset == layout.endOffset {
            // Most clients write names as their server does.
            let range = DNSHeader.byteCount..<layout.endOffset
            if message.bytes.extracting(range).hasSameBytes(as: question.bytes.extracting(range)) { return true }
        }
        guard QuestionView(message.bytes, layout).isEqual(to: question) else { return false }
        // Neither is compressed, and both have the same labels: one is as long as the other.
        try question.name.write(into: &message, at: layout.name.offset)
        return true
    }

    /// Gives each letter of the question's name a case by chance, for whoever forges an answer to have to guess it
    /// (draft-vixie-dnsext-dns0x20).
    ///
    /// - Parameter entropy: A random bit for each letter of the longest name.
    public static func mixQuestionCase(
        in message: inout MutableRawSpan, entropy: InlineArray<4, UInt64>
    ) throws(DNSMessageError) {
        let layout = try QuestionLayout(checking: message.bytes)
        var walk = LabelWalk(at: layout.name.offset)
        var letter = 0
        while let label = walk.next(in: message.bytes) {
            for offset in label {
                let octet = message.bytes.uint8(at: offset)
                guard octet.isASCIILetter else { continue }
                let bit = UInt8(truncatingIfNeeded: entropy[letter / 64] >> UInt64(letter % 64)) & 1
                message.store(octet & ~0x20 | bit << 5, at: offset)
                letter += 1
            }
        }
    }

    /// Moves bytes towards the beginning; the two places may overlap.
    static func moveDown(_ range: Range<Int>, to offset: Int, in message: inout MutableRawSpan) {
        guard offset != range.lowerBound else { return }
        for index in 0..<range.count {
            message.store(message.bytes.uint8(at: range.lowerBound + index), at: offset + index)
        }
    }
}
