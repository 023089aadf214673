import ByteAccess

extension MessageEditing {
    /// Takes the OPT record of a message away, whatever is in it, and writes another at the end, so that the whole fits into `limit`
    /// bytes: whole RRsets go when there is not enough room, and TC is set then. A TSIG record goes too: it is for one hop, and does not
    /// fit any more when something else has changed.
    ///
    /// - Parameters:
    ///   - message: A buffer with the message at its start and room for the record.
    ///   - count: The length of the message in bytes.
    ///   - edns: The new record; nil for none, as a client without EDNS needs it (RFC 6891 §7).
    ///   - responseCode: The whole response code; nil keeps the four bits of the header.
    /// - Returns: The length of the message afterwards. Throws ``DNSMessageError/recordsBehindOPT`` when records are behind the old one
    ///   that cannot be moved: ``MessageWriter/append(contentsOf:into:where:)`` copies such a message without it.
    public static func replaceOPT(
        in message: inout MutableRawSpan, count: Int, with edns: EDNSFields?, responseCode: ResponseCode? = nil,
        limit: Int = DNSMessageView.maximumByteCount
    ) throws(DNSMessageError) -> Int {
        var count = count
        // Both are additional records.
        if try DNSHeader(parsing: message.bytes).additionalCount > 0 {
            count = try removeTSIG(from: &message, count: count)
            count = try removeOPT(from: &message, count: count)
        }
        guard let edns else {
            return try truncate(&message, count: count, to: limit)
        }
        count = try truncate(&message, count: count, to: min(limit, message.byteCount) - edns.minimumLength)
        var header = try DNSHeader(parsing: message.bytes)
        let code = responseCode ?? header.flags.responseCode
        guard header.additionalCount < .max,
            let end = edns.write(into: &message, at: count, limit: limit, responseCode: code)
        else { throw .outputTooSmall }
        header.additionalCount += 1
        header.flags.responseCode = code
        header.store(into: &message)
        return end
    }

    /// Takes a TSIG record away, which is the last one.
    ///
    /// - Returns: The length of the message afterwards.
    private static func removeTSIG(from message: inout MutableRawSpan, count: Int) throws(DNSMessageError) -> Int {
        var walk = try RecordWalk(parsing: message.bytes.extracting(..<count))
        while let record = try walk.next(in: message.bytes.extracting(..<count)) {
            guard record.type == .tsig, walk.isAtEnd else { continue }
            var header = try DNSHeader(parsing: message.bytes)
            header[record.section] -= 1
            header.store(into: &message)
            return record.offset
        }
        return count
    }

    /// Takes the OPT record away.
    ///
    /// - Returns: The length of the message afterwards.
    private static func removeOPT(from message: inout MutableRawSpan, count: Int) throws(DNSMessageError) -> Int {
        guard let opt = try findOPT(in: message.bytes.extracting(..<count)) else { return count }
        if opt.endOffset < count {
            guard try !hasPointers(behind: opt, in: message.bytes.extracting(..<count)) else { throw .recordsBehindOPT }
            moveDown(opt.endOffset..<count, to: opt.offset, in: &message)
        }
        var header = try DNSHeader(parsing: message.bytes)
        header[opt.section] -= 1
        header.store(into: &message)
        return count - (opt.endOffset - opt.offset)
    }

    /// True when a name behind the OPT record points into it or behind it.
    private static func hasPointers(behind opt: RecordLayout, in message: RawSpan) throws(DNSMessageError) -> Bool {
        var walk = try RecordWalk(parsing: message)
        while let record = try walk.next(in: message) {
            guard record.offset > opt.offset else { continue }
            if try pointsBehind(opt.offset, nameAt: record.offset, in: message) { return true }
            let shape = RecordDataShape(of: record.type)
            var offset = record.data.lowerBound + Int(shape.fixed)
            for _ in 0..<shape.strings {
                try RecordDataShape.passString(in: message, at: &offset, end: record.data.upperBound)
            }
            for _ in 0..<shape.names {
                if try pointsBehind(opt.offset, nameAt: offset, in: message) { return true }
                offset = try NameLayout.end(ofNameIn: message, at: offset)
            }
        }
        return false
    }

    /// True when the name's first pointer leads to `limit` or beyond; what is before `limit` only points to before it.
    private static func pointsBehind(
        _ limit: Int, nameAt offset: Int, in message: RawSpan
    ) throws(DNSMessageError) -> Bool {
        guard let target = try NameLayout.firstPointer(ofNameIn: message, at: offset) else { return false }
        return target >= limit
    }
}
