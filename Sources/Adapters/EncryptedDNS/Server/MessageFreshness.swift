internal import DNSMessage

/// For how long caches of HTTP may keep an answer.
enum MessageFreshness {
    /// The seconds for `max-age` (RFC 8484 §5.1): the smallest TTL of what was asked for, or that of the SOA record when there is nothing
    /// (RFC 2308 §5); 0 for failures, and for what nobody may keep.
    static func maximumAge(of message: RawSpan) -> UInt32 {
        guard let view = try? DNSMessageView(checking: message) else { return 0 }
        switch view.cacheLifetime {
        case .positive(let smallest):
            var answers = view.records(in: .answer)
            var minimum: UInt32?
            while let record = answers.next() { minimum = min(minimum ?? .max, record.timeToLive) }
            return minimum ?? smallest
        case .negative(let seconds): return seconds
        case .failure, .none: return 0
        }
    }
}
