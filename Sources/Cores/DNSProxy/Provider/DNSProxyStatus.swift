public import IPPacket
public import Provider

/// What a proxy has done so far.
public struct DNSProxyCounters: Equatable, Sendable {
    /// Queries of clients, with those that were dropped.
    public var queries: UInt64 = 0
    /// Queries that were answered from the cache.
    public var cacheHits: UInt64 = 0 { didSet { lastResult = .cached } }
    /// Queries that nothing was kept for, or only what is too old.
    public var cacheMisses: UInt64 = 0
    /// Queries that were answered from what is too old, because no server answered.
    public var stale: UInt64 = 0 { didSet { lastResult = .stale } }
    /// Queries that a rule blocked, by their own name or by what the answer leads to.
    public var blocked: UInt64 = 0 { didSet { lastResult = .blocked } }
    /// Answers that were held back because they lead to the inside.
    public var rebinding: UInt64 = 0 { didSet { lastResult = .rebinding } }
    /// Queries that the proxy answered from what standards say.
    public var local: UInt64 = 0 { didSet { lastResult = .local } }
    /// Queries that were not in order, or of a kind that is not answered.
    public var refused: UInt64 = 0 { didSet { lastResult = .refused } }
    /// Queries that joined one that was under way.
    public var merged: UInt64 = 0
    /// Queries that got a server's answer.
    public var forwarded: UInt64 = 0 { didSet { lastResult = .forwarded } }
    /// Queries that got SERVFAIL, or a server's refusal.
    public var failed: UInt64 = 0 { didSet { lastResult = .failed } }
    /// Queries that there was no room for.
    public var overloaded: UInt64 = 0 { didSet { lastResult = .overloaded } }
    /// Queries whose client went away.
    public var abandoned: UInt64 = 0
    /// Queries without a whole header.
    public var droppedWithoutHeader: UInt64 = 0
    /// Answers that came as queries.
    public var droppedAnswers: UInt64 = 0
    /// Questions that were put to a server again before the answer that is kept was too old.
    public var prefetches: UInt64 = 0
    /// Those of them that came to nothing.
    public var failedPrefetches: UInt64 = 0
    /// Times that more was asked because a server took longer than usual: another one, or it once more.
    public var hastened: UInt64 = 0
    /// Times that no more was asked although a server took longer than usual, because that had been done too often.
    public var unhastened: UInt64 = 0
    /// Questions that were put to a server beside another one, at the same time.
    public var parallel: UInt64 = 0
    /// What came for an exchange and was not its answer.
    public var wrongAnswers: UInt64 = 0
    /// What was counted last of that which a query's result is. A query that counts twice, from the cache and blocked for one, has the
    /// later as its result.
    public internal(set) var lastResult = QueryResult.refused

    /// Nothing yet.
    public init() {}
}

/// How a server is doing.
public struct UpstreamStatus: Equatable, Sendable {
    /// What the configuration calls it.
    public var name: String
    /// How it is asked.
    public var transport: ExchangeTransport
    /// True while it is asked after all others.
    public var isDown: Bool
    /// How many exchanges were begun.
    public var exchanges: UInt64
    /// How many ended in an answer.
    public var answers: UInt64
    /// How many came to nothing.
    public var failures: UInt64
    /// Why the last that came to nothing did.
    public var lastFailure: ExchangeFailure?
    /// How many came to nothing for which reason.
    public var failureCounts: ExchangeFailureCounts
    /// True when it does not keep the case of letters, so that it is not mixed.
    public var losesCase: Bool
    /// How long it usually takes from the begin of an exchange to the answer, connecting included where there was no connection:
    /// smoothed as RFC 6298 §2 does it. Nil before the first answer.
    public var roundTripTime: Interval?
    /// How long its answers took, each of ``answers``, from the begin of the exchange.
    public var latency: LatencyHistogram
}

/// How a proxy is doing.
public struct DNSProxyStatus: Equatable, Sendable {
    /// True between start and stop.
    public var isRunning: Bool
    /// True while the machine sleeps.
    public var isAsleep: Bool
    /// What it has done.
    public var counters: DNSProxyCounters
    /// How queries were answered.
    public var results: QueryResultCounts
    /// The servers, in the order of the configuration.
    public var upstreams: [UpstreamStatus]
    /// The prefix of the IPv6 addresses that are made; nil when none are.
    public var translationPrefix: IPPrefix?
    /// Records of the configuration.
    public var localRecords: Int
    /// What hosts files held.
    public var hosts: HostNames.Counts
    /// Questions under way.
    public var lookups: Int
    /// Queries of clients that wait.
    public var waiting: Int
    /// Answers that are kept.
    public var cachedAnswers: Int
    /// The bytes that they take up.
    public var cacheUsedByteCount: Int
    /// The bytes that are set aside for them.
    public var cacheByteCount: Int
    /// How many answers had to go before their time because there was no room, since the start.
    public var cacheEvictions: UInt64
}
