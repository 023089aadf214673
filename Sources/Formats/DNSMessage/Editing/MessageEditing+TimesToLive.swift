import ByteAccess

extension MessageEditing {
    /// Takes the seconds that a message was kept off the TTL of each of its records, down to 0 (RFC 1035 §3.2.1). OPT has none.
    public static func age(_ message: inout MutableRawSpan, by seconds: UInt32) throws(DNSMessageError) {
        try changeTimesToLive(of: &message) { $0 > seconds ? $0 - seconds : 0 }
    }

    /// Takes seconds off the TTL of each record as ``age(_:by:)`` does, for a message whose header need not be read again.
    ///
    /// - Parameters:
    ///   - records: How many records there are, one after the other.
    ///   - offset: Where the first one begins.
    /// - Returns: False when the records are not whole. Some may be changed then.
    public static func age(
        _ message: inout MutableRawSpan, records: Int, from offset: Int, by seconds: UInt32
    ) -> Bool {
        let end = message.byteCount
        var position = offset
        for _ in 0..<records {
            // The owner, most often a pointer.
            while true {
                guard position < end else { return false }
                let length = Int(message.bytes.uint8(at: position))
                if length >= 0xC0 {
                    position += 2
                    break
                }
                guard length < 0x40 else { return false }
                position += length + 1
                if length == 0 { break }
            }
            guard end - position >= 10 else { return false }
            let type = RecordType(rawValue: message.bytes.bigEndianUInt16(at: position))
            if type != .opt, type != .tsig, type != .sig {
                let old = TimeToLive.effective(message.bytes.bigEndianUInt32(at: position + 4))
                message.storeBigEndian(old > seconds ? old - seconds : 0, at: position + 4)
            }
            position += 10 + Int(message.bytes.bigEndianUInt16(at: position + 8))
        }
        return position <= end
    }

    /// Brings the TTL of each record into bounds, in seconds. What is 0 stays 0: it was not meant to be kept.
    public static func boundTimesToLive(
        of message: inout MutableRawSpan, to bounds: ClosedRange<UInt32>
    ) throws(DNSMessageError) {
        try changeTimesToLive(of: &message) { $0 == 0 ? 0 : min(max($0, bounds.lowerBound), bounds.upperBound) }
    }

    /// Sets the TTL of each record, in seconds: of an answer that is too old, for one (RFC 8767 §4).
    public static func setTimesToLive(
        of message: inout MutableRawSpan, to seconds: UInt32
    ) throws(DNSMessageError) {
        try changeTimesToLive(of: &message) { _ in seconds }
    }

    /// Gives every record but OPT, TSIG and SIG another TTL. A number that is too large counts as 0 (RFC 2181 §8).
    private static func changeTimesToLive(
        of message: inout MutableRawSpan, _ change: (UInt32) -> UInt32
    ) throws(DNSMessageError) {
        var walk = try RecordWalk(parsing: message.bytes)
        while let record = try walk.next(in: message.bytes) {
            guard record.type != .opt, record.type != .tsig, record.type != .sig else { continue }
            let raw = message.bytes.bigEndianUInt32(at: record.timeToLiveOffset)
            message.storeBigEndian(change(TimeToLive.effective(raw)), at: record.timeToLiveOffset)
        }
    }
}
