internal import ByteAccess
internal import DNSMessage
public import Provider

/// The DNS proxy provider without its input and output: queries, answers and the time go in, answers and actions come out. It serves
/// queries from wherever they come: sockets, a tunnel's packets, flows that the system hands over.
///
/// ```
///   query ─▶ parse ─▶ local names ─▶ rules ─▶ cache ─▶ route ─▶ exchange ─▶ check ─▶ rules on the answer ─▶ store ─▶ answer
///              │           │           │        │                                        │
///              └───────────┴───────────┴────────┴── answered at once                     └── held back
/// ```
///
/// - Every query that has a header and is no answer itself is answered, exactly once, and before its time is over.
/// - What a route is for is asked of no other server, whatever happens.
/// - While the machine sleeps there is no deadline. Waking, what became due is done, and the rest is asked anew.
///
/// After each call the host does what ``takeActions()`` has.
public struct DNSProxyProvider: ~Copyable, Sendable {
    /// The bytes that an output has to have: those of the longest message.
    public static var answerCapacity: Int { DNSMessageView.maximumByteCount }

    var configuration: DNSProxyConfiguration
    var composer = AnswerComposer()
    var rules = NameRules([])
    var rewriter = AnswerRewriter()
    var subnets = SubnetIndex()
    var routes = NameTable<Int>([])
    /// Domains whose names may lead to the inside.
    var rebindingAllowed = NameTable<Bool>([])
    /// The records of the configuration.
    var records = LocalNames()
    /// What hosts files say.
    var hosts = HostNames()
    let specialNames = SpecialName.all
    /// Counts the sets of rules: what was made of an answer with others is made anew.
    var rulesGeneration: UInt32 = 0
    var cache: AnswerCache
    var lookups = LookupTable()
    var discovery = PrefixDiscovery()
    var upstreams: [UpstreamState] = []
    var counters = DNSProxyCounters()
    var results = QueryResultCounts()
    /// True to have ``takeReports()`` tell of each answer to a query that had to wait.
    public var reportsAnswers = false
    var reports: [AnswerReport] = []
    var origin = AnswerOrigin()
    /// What the last rule that blocked something is from.
    var lastBlocker = RuleSource.inline
    var isRunning = false
    var isAsleep = false
    var refusesFlows = false
    /// The way to the network; nil until the host told.
    var path: NetworkPath?
    /// Room to put answers together in; taken out of here while it is used.
    var buffers: (kept: [UInt8], output: [UInt8]) = ([], [])
    /// As above, for answers with aliases of local records.
    var aliasBuffer: [UInt8] = []

    private var actions: [DNSProxyAction] = []
    private let passedByAddress = PassedByAddress()

    /// A provider that does not run yet.
    public init() {
        configuration = DNSProxyConfiguration(upstreams: [])
        cache = AnswerCache(byteLimit: 0)
    }

    /// When ``handleDeadlines(at:)`` has to be called if nothing happens before; nil for never. It is never a time that was handled.
    public var nextDeadline: Instant? {
        guard !isAsleep else { return nil }
        guard let first = lookups.nextDeadline, let second = discovery.nextQuestion else {
            return lookups.nextDeadline ?? discovery.nextQuestion
        }
        return min(first, second)
    }

    /// True when ``takeActions()`` has something.
    public var hasActions: Bool { !actions.isEmpty }

    /// What the host is to do, in order. Nothing is in it twice.
    public mutating func takeActions() -> [DNSProxyAction] {
        if actions.isEmpty { return [] }
        let taken = actions
        actions = []
        return taken
    }

    /// As ``takeActions()``, without an allocation: what the host is to do goes where nothing is, and that room is used for what comes next.
    public mutating func takeActions(into empty: inout [DNSProxyAction]) {
        precondition(empty.isEmpty, "actions that have not been carried out")
        swap(&actions, &empty)
    }

    /// Does what is due.
    public mutating func handleDeadlines(at now: Instant) {
        guard !isAsleep else { return }
        expire(at: now)
        discoverPrefix(at: now)
    }

    /// How the proxy is doing.
    public func status(at now: Instant) -> DNSProxyStatus {
        DNSProxyStatus(
            isRunning: isRunning, isAsleep: isAsleep, counters: counters, results: results,
            upstreams: upstreams.map { $0.status(at: now) }, translationPrefix: discovery.prefix?.prefix,
            localRecords: records.recordCount, hosts: hosts.counts, lookups: lookups.count,
            waiting: lookups.waitingCount, cachedAnswers: cache.count, cacheUsedByteCount: cache.usedByteCount,
            cacheByteCount: cache.allocatedByteCount, cacheEvictions: cache.evictionCount)
    }

    mutating func emit(_ action: DNSProxyAction) {
        actions.append(action)
    }

    mutating func log(_ level: LogLevel, _ message: LogMessage) {
        actions.append(.log(level, message))
    }
}

/// Takes bytes out of where they are stored, as many as the longest message has: a span of them does not lock what they are stored in.
func takeBuffer(_ stored: inout [UInt8]) -> [UInt8] {
    var taken: [UInt8] = []
    swap(&taken, &stored)
    if taken.isEmpty { taken = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity) }
    return taken
}
