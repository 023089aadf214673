import ByteAccess

extension MessageEditing {
    /// Cuts a message down to `limit` bytes: whole RRsets go, from the end, and TC is set when any went (RFC 2181 §9). Question and OPT
    /// record stay.
    ///
    /// - Parameters:
    ///   - message: A buffer with the message at its start.
    ///   - count: The length of the message in bytes.
    /// - Returns: The length of the message afterwards. Throws ``DNSMessageError/outputTooSmall`` when question and OPT record alone are
    ///   longer; the message is as it was then.
    public static func truncate(
        _ message: inout MutableRawSpan, count: Int, to limit: Int
    ) throws(DNSMessageError) -> Int {
        guard count > limit else { return count }
        let opt = try findOPT(in: message.bytes.extracting(..<count))
        let optLength = opt.map { $0.endOffset - $0.offset } ?? 0
        let cut = try findCut(in: message.bytes.extracting(..<count), limit: limit - optLength)
        guard cut.offset <= limit - optLength else { throw .outputTooSmall }

        var header = cut.header
        if let opt {
            moveDown(opt.offset..<opt.endOffset, to: cut.offset, in: &message)
            header.additionalCount += 1
        }
        header.flags.insert(.truncated)
        header.store(into: &message)
        return cut.offset + optLength
    }

    /// Where a message ends when it may have `limit` bytes, with a header that counts what is before it. Nothing is kept behind an OPT
    /// record, for it to go where the cut is.
    private static func findCut(
        in message: RawSpan, limit: Int
    ) throws(DNSMessageError) -> (offset: Int, header: DNSHeader) {
        var kept = try DNSHeader(parsing: message)
        (kept.answerCount, kept.authorityCount, kept.additionalCount) = (0, 0, 0)
        var walk = try RecordWalk(parsing: message)
        var setStart = (offset: walk.position, header: kept)
        var previous: RecordLayout?
        while let record = try walk.next(in: message) {
            if record.type == .opt { return (record.offset, kept) }
            if try previous.map({ (previous) throws(DNSMessageError) in try !isSameSet(record, previous, in: message) })
                ?? true
            {
                setStart = (record.offset, kept)
            }
            if record.endOffset > limit { return setStart }
            kept[record.section] += 1
            previous = record
        }
        return (walk.position, kept)
    }

    private static func isSameSet(
        _ record: RecordLayout, _ other: RecordLayout, in message: RawSpan
    ) throws(DNSMessageError) -> Bool {
        guard record.section == other.section, record.type == other.type, record.recordClass == other.recordClass else {
            return false
        }
        return try DomainNameView(checking: message, at: record.offset).isEqual(
            to: DomainNameView(checking: message, at: other.offset))
    }

    static func findOPT(in message: RawSpan) throws(DNSMessageError) -> RecordLayout? {
        var walk = try RecordWalk(parsing: message)
        while let record = try walk.next(in: message) {
            if record.type == .opt { return record }
        }
        return nil
    }
}
