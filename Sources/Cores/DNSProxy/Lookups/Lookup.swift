internal import DNSMessage
internal import Provider

/// A question under way, and who waits for its answer.
///
/// ```
///              the upstream's own transport              silence, connection lost        failure, silence
///   new ────────────────────────────────────▶ attempt ─────────────────────▶ fresh ───────────────────────▶ next upstream …
///                                                │ TC, letters lost                                           │ none left
///                                                └──────────▶ TCP                                             ▼
///                                                                                                  waits for those still open
///   any right answer: all others are cancelled, all clients answered         deadline: SERVFAIL, or the best that was heard
/// ```
///
/// What was started stays open until the deadline: the first right answer counts, wherever it comes from.
struct Lookup: Sendable {
    /// What it is found by: the bytes of the ``CacheKey``.
    let key: [UInt8]
    /// When it ends at the latest.
    let deadline: Instant
    /// The query that began it. Its question is what is asked.
    let first: WaitingQuery
    /// The route that its name has; nil for none.
    var route: Int?
    /// Who waits, the first one included.
    var waiting: [WaitingQuery] = []
    /// The servers in the order to try them.
    var upstreams: [UpstreamID] = []
    /// The place of the one that is tried now.
    var position = 0
    /// True when its connection was replaced already.
    var hasRetried = false
    /// True when an answer without the question's letters was looked into already.
    var hasCheckedCase = false
    /// What is open, the latest last.
    var attempts: [Attempt] = []
    /// When to go on to the next step; nil when there is none.
    var stepDeadline: Instant?
    /// The best that a server had to say so far: a failure's code and reason.
    var refusal: (code: ResponseCode, error: ExtendedErrorCode?)?
    /// Why the last attempt came to nothing.
    var failure: ExchangeFailure?

    /// DO of the question as it is asked.
    var dnssecOK: Bool { key[0] & 1 != 0 }
    /// CD of the question as it is asked.
    var checkingDisabled: Bool { key[0] & 2 != 0 }

    /// When something is to be done.
    var nextDeadline: Instant { min(stepDeadline ?? deadline, deadline) }
}

/// A query that a server has been sent, or is about to be.
struct Attempt: Sendable {
    let id: ExchangeID
    let upstream: UpstreamID
    let transport: ExchangeTransport
    let usesEDNS: Bool
    let mixesCase: Bool
    /// True when it tells whether a server is back.
    let isProbe: Bool
    /// Header and question as they were sent; empty before.
    var sent: [UInt8] = []
}
