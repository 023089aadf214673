internal import DNSMessage

/// Marks a kept answer as one that policy has changed, so that each client is told (RFC 8914 §4.5 and §4.18).
///
/// A mark is a bit of the kept answer's header that means nothing there: a proxy's answers never have it.
enum RewritingMark {
    /// Something was taken out, and there still is an answer.
    case forged
    /// Nothing is left of the records that were asked for.
    case filtered

    /// The bit: AA or Z.
    var flag: DNSFlags {
        switch self {
        case .forged: .authoritativeAnswer
        case .filtered: .reserved
        }
    }

    /// What a client is told about a kept answer with these flags; nil for nothing.
    static func error(in flags: DNSFlags) -> ExtendedError? {
        if flags.isDisjoint(with: [.authoritativeAnswer, .reserved]) { return nil }
        return ExtendedError(flags.contains(RewritingMark.filtered.flag) ? .filtered : .forgedAnswer)
    }
}
