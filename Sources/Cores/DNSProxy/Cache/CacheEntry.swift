internal import DNSMessage
internal import Provider

/// What is known of an answer that is kept, besides its bytes.
struct CacheEntry: BitwiseCopyable {
    /// No entry, block or place.
    static var none: UInt32 { .max }

    /// The key's hash.
    var hash: UInt64
    /// When the answer came, in nanoseconds of the clock.
    var storedAtNanoseconds: UInt64
    /// From when on it is not given out any more, in nanoseconds of the clock.
    var expiresAtNanoseconds: UInt64
    /// The rules that ``verdict`` is of.
    var rulesGeneration: UInt32
    /// Its first block.
    var firstBlock: UInt32
    /// The entry behind it with a hash that leads to the same place.
    var nextInPlace: UInt32
    /// The entry that was stored next, and the one before.
    var newer: UInt32
    var older: UInt32
    /// For how many milliseconds after it expired it is given out without a server being asked, since one was in vain; 0 for not.
    var recheckMilliseconds: UInt32 = 0
    /// The rules under which plain queries get it without more being looked at; 0 for none.
    var plainGeneration: UInt32 = 0
    /// The answer's length in bytes.
    var byteCount: UInt16
    /// DO in the lowest bit and CD in the next, as the key has them.
    var keyFlags: UInt8
    var kind: Kind
    /// What rules say about the answer.
    var verdict: AnswerVerdict
    /// True when it was given out since it was last considered for removal.
    var wasUsed: Bool
    /// How often in a row the question has failed.
    var failureCount: UInt8
    /// How often it was given out, and how often it was asked for anew: see ``useCount`` and ``prefetchCount``.
    var usage: UInt8 = 0

    /// What kind of answer it is.
    enum Kind: UInt8, BitwiseCopyable {
        case answer
        /// Nobody could answer (RFC 9520).
        case failure
    }

    /// When the answer came.
    var storedAt: Instant { Instant(nanoseconds: storedAtNanoseconds) }
    /// From when on it is not given out any more.
    var expiresAt: Instant { Instant(nanoseconds: expiresAtNanoseconds) }

    /// True when it is too old, and servers were asked in vain not long ago (RFC 8767 §5).
    func awaitsRecheck(at now: Instant) -> Bool {
        now < expiresAt + .milliseconds(UInt64(recheckMilliseconds))
    }

    /// The length of an entry in memory.
    static var byteCount: Int { MemoryLayout<CacheEntry>.stride }
}

/// What policy makes of an answer.
enum AnswerVerdict: Equatable, BitwiseCopyable {
    /// Clients get it.
    case passes
    /// A rule of this source blocks a name that it leads to.
    case blocked(RuleSource)
    /// It leads a name of the outside to an address of the inside.
    case rebinds
}
