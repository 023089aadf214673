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
/// Where the strategy has several servers asked at once, each step is several attempts; see ``UpstreamCourse``.
/// What was started stays open until the deadline: the first right answer counts, wherever it comes from.
///
/// With DNS64 all of this may happen twice for one client's question (RFC 6147 §5.1):
///
/// ```
///                  AAAA that is of use, NXDOMAIN
///   question ──────────────────────────────────────────────▶ the answer
///      │ no AAAA, failure, half of the time is over              ▲
///      └───────────────────────────▶ addresses ──────────────────┘
///                                    A of the same name
///   reverse ────────────────────────────────────────────────▶ the answer
///      PTR of the IPv4 address instead of the client's name
/// ```
///
/// When there is an answer that is too old, those who wait get it once they have waited for long enough, and the lookup goes on without
/// them, to bring a new one.
struct Lookup: Sendable {
    /// What servers are asked. The rare cases are kept elsewhere, lest every lookup be as large as a name.
    indirect enum Phase: Sendable {
        /// The client's question.
        case question
        /// The IPv4 addresses of the name, because it has none of IPv6.
        case addresses(AbsentAddresses)
        /// The name of the IPv4 address that is in the one that the client asks about.
        case reverse(DomainName)
    }

    /// The bytes of the ``CacheKey``.
    let key: [UInt8]
    /// When it ends at the latest.
    let deadline: Instant
    /// The query that began it. Its question is what is asked.
    let first: WaitingQuery
    /// The route that its name has; nil for none.
    var route: Int?
    /// Who waits, the first one included.
    var waiting: [WaitingQuery] = []
    /// What servers are asked.
    var phase = Phase.question
    /// The network of the clients that wait, which servers are told; nil to tell them nothing.
    var subnet: ClientSubnet?
    /// For how many bits of it the answer is; nil while there is none, or it does not say.
    var scopeLength: UInt8?
    /// When this phase ends at the latest.
    var phaseDeadline: Instant
    /// When those who wait get an answer that is too old; nil for never.
    var staleDeadline: Instant?
    /// True when the answer is wanted although nobody waits: for the cache.
    var isRefreshing = false
    /// True when it began although there is an answer, which is about to become too old.
    var isPrefetch = false
    /// True when the answer tells the network's prefix (RFC 7050).
    var discoversPrefix = false
    /// The servers in the order to try them, and who is tried now.
    var course = UpstreamCourse.none
    /// True when an answer without the question's letters was looked into already.
    var hasCheckedCase = false
    /// What is open, the latest last.
    var attempts: [Attempt] = []
    /// When to go on to the next step; nil when there is none.
    var stepDeadline: Instant?
    /// True when that is before the step's share of the time is over.
    var isStepHastened = false
    /// The best that a server had to say so far: a failure's code and reason.
    var refusal: (code: ResponseCode, error: ExtendedErrorCode?)?
    /// Why the last attempt came to nothing.
    var failure: ExchangeFailure?
    /// True when a server found signatures that do not fit.
    var isBogus = false

    init(key: [UInt8], deadline: Instant, first: WaitingQuery, route: Int?) {
        self.key = key
        self.deadline = deadline
        self.first = first
        self.route = route
        phaseDeadline = deadline
    }

    /// What it is found by: its key, and the network that servers are told.
    var tableKey: [UInt8] { Self.tableKey(key, subnet) }

    /// What a lookup with a key and a network is found by.
    static func tableKey(_ key: [UInt8], _ subnet: ClientSubnet?) -> [UInt8] {
        guard let subnet else { return key }
        return key + [subnet.sourcePrefixLength] + (subnet.address.map { Array("\($0)".utf8) } ?? [])
    }

    /// The flags of its key.
    var keyFlags: UInt8 { key[0] }
    /// DO of the question as it is asked.
    var dnssecOK: Bool { key[0] & 1 != 0 }
    /// CD of the question as it is asked.
    var checkingDisabled: Bool { key[0] & 2 != 0 }

    /// QTYPE of the client's question.
    var type: RecordType { RecordType(rawValue: UInt16(key[1]) << 8 | UInt16(key[2])) }
    /// True when somebody has a use for the answer.
    var isWanted: Bool { !waiting.isEmpty || isRefreshing || discoversPrefix }

    /// When something is to be done.
    var nextDeadline: Instant { min(stepDeadline ?? phaseDeadline, phaseDeadline, staleDeadline ?? phaseDeadline) }
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
    /// When it began.
    let begin: Instant
    /// When it takes longer than the server usually does; nil when that is not known.
    let late: Instant?
    /// True when the lookup has gone on without it: it counts when it is answered, and its failure leads to nothing more.
    var isPassedOver: Bool
    /// True when the server had its time, and did not answer.
    var isOverdue = false
    /// Header and question as they were sent; empty before.
    var sent: [UInt8] = []

    /// True when its server usually takes less, and the lookup still waits for it.
    func isLate(at now: Instant) -> Bool { !isPassedOver && late.map { $0 <= now } ?? false }
}
