import ByteAccess

extension MessageEditing {
    /// Takes the seconds that a message was kept off the TTL of each of its records, down to 0 (RFC 1035 §3.2.1). OPT has none.
    public static func age(_ message: inout MutableRawSpan, by seconds: UInt32) throws(DNSMessageError) {
        try changeTimesToLive(of: &message) { $0 > seconds ? $0 - seconds : 0 }
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
