/// For how long an answer may be kept.
public enum CacheLifetime: Hashable, Sendable {
    /// It has what was asked for: the smallest TTL of all its records, in seconds.
    case positive(UInt32)
    /// It says that there is no such name or type: the smaller one of the SOA record's TTL and MINIMUM, or the smallest TTL of all
    /// records when that is less, in seconds (RFC 2308 §5, RFC 6604 §3).
    case negative(UInt32)
    /// A failure, whose caching follows other rules (RFC 9520).
    case failure
    /// Not at all: it is truncated, it is negative without an SOA record (RFC 2308 §5), or it has no question.
    case none
}

extension DNSMessageView {
    /// For how long the answer may be kept as its TTLs say. Bounds are the cache's own matter.
    public var cacheLifetime: CacheLifetime {
        if header.flags.contains(.truncated) || questionLayout == nil { return .none }
        switch answerKind {
        case .records: return .positive(minimumTimeToLive ?? 0)
        case .noData, .nameError:
            guard let negative = negativeTimeToLive else { return .none }
            return .negative(min(negative, minimumTimeToLive ?? negative))
        case .failure: return .failure
        case .endlessAliases: return .none
        }
    }

    /// The smallest TTL of all records but OPT, TSIG and SIG, in seconds; nil when there is none.
    public var minimumTimeToLive: UInt32? {
        var minimum: UInt32?
        var records = records
        while let record = records.next() {
            guard record.type != .opt, record.type != .tsig, record.type != .sig else { continue }
            minimum = min(minimum ?? .max, record.timeToLive)
        }
        return minimum
    }

    /// The smaller one of TTL and MINIMUM of the SOA record in the authority section, in seconds; nil when there is none
    /// (RFC 2308 §5).
    public var negativeTimeToLive: UInt32? {
        var records = records(in: .authority)
        while let record = records.next() {
            if let authority = record.startOfAuthority { return min(record.timeToLive, authority.minimum) }
        }
        return nil
    }
}
