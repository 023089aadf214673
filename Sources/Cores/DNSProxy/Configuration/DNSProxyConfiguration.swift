public import DNSMessage
public import IPPacket
public import Provider

/// What a DNS proxy does.
public struct DNSProxyConfiguration: Equatable, Sendable {
    /// The servers; one at least.
    public var upstreams: [DNSUpstream]
    /// The servers for what has no route, in the order to try them; one at least.
    public var defaultUpstreams: [UpstreamID]
    /// Which domains are for which servers. Of two routes for a name, that of the longer domain counts.
    public var routes: [DomainRoute] = []
    /// Records of names that no server is asked about, whatever rules and routes say. `*` as a first label stands for all that is below
    /// the rest and has no records of its own.
    public var records: [ResourceRecord] = []
    /// Which of several servers are asked first.
    public var strategy = UpstreamStrategy.ordered
    /// What is blocked and what is not.
    public var rules: [NameRule] = []
    /// Which addresses are blocked and which are not, whatever name leads to them.
    public var addressRules: [AddressRule] = []
    /// What becomes of what is blocked.
    public var blockedAnswer = BlockedAnswer.zero
    /// For how many seconds clients may keep that something is blocked.
    public var blockedTimeToLive: UInt32 = 10
    /// How long a client waits for its answer at most.
    public var timeout = Interval.seconds(5)
    /// How long a client's connection may be idle: it is told to clients that ask for it (RFC 7828).
    public var clientIdle = Interval.seconds(20)
    /// True when the case of letters in questions is drawn at random where somebody could forge an answer.
    public var mixesCase = false
    /// True when answers that would send a name of the outside to an address of the inside are held back.
    public var blocksRebinding = true
    /// Domains whose names may lead to the inside all the same.
    public var rebindingAllowed: [DomainName] = []
    /// True when the names of iCloud Private Relay are said not to exist, so that devices do without it.
    public var blocksPrivateRelay = false
    /// True when names of one label are asked about as any other: their addresses are said not to exist otherwise.
    public var forwardsSingleLabels = false
    /// How many bytes of memory answers are kept in; 0 for none.
    public var cacheByteCount = 2_097_152
    /// True when answers that many want are asked for anew before their time is over.
    public var prefetches = false
    /// For how long after it expired an answer may still be given when no server answers (RFC 8767); zero for never.
    public var staleLimit = Interval.seconds(86_400)
    /// The bounds of TTLs in seconds, 604,800 at most: of answers that have what was asked for, and never of a TTL of 0.
    public var timeToLiveBounds: ClosedRange<UInt32> = 0...604_800
    /// Whether IPv6 addresses are made for names that have none.
    public var dns64 = DNS64.off
    /// What is taken out of answers.
    public var rewriting = AnswerRewriting()
    /// True when what a client says about its network reaches servers, and their answers are kept for it (RFC 7871).
    public var passesClientSubnet = false
    /// How many questions may be under way.
    public var maximumLookups = 2048
    /// How many clients' queries may wait for an answer.
    public var maximumWaiting = 8192

    /// A proxy without rules.
    ///
    /// - Parameter defaultUpstreams: The servers for what has no route. Nil stands for all that no route names, or for all servers
    ///   when each is named by one.
    public init(
        upstreams: [DNSUpstream], defaultUpstreams: [UpstreamID]? = nil, routes: [DomainRoute] = []
    ) {
        self.upstreams = upstreams
        self.routes = routes
        let all = upstreams.indices.map { UpstreamID(index: $0) }
        let routed = Set(routes.flatMap(\.upstreams))
        let free = all.filter { !routed.contains($0) }
        self.defaultUpstreams = defaultUpstreams ?? (free.isEmpty ? all : free)
    }

    /// Throws what makes the configuration one that cannot be followed: a start or a reload with it would throw the same.
    public func check() throws(DNSProxyError) {
        guard !upstreams.isEmpty, !defaultUpstreams.isEmpty else { throw .noUpstream }
        for upstream in defaultUpstreams + routes.flatMap(\.upstreams) {
            guard upstreams.indices.contains(upstream.index) else { throw .unknownUpstream(upstream) }
        }
        guard routes.allSatisfy({ !$0.upstreams.isEmpty }) else { throw .noUpstream }
        guard timeout.nanoseconds > 0, maximumLookups > 0, maximumWaiting > 0, cacheByteCount >= 0 else {
            throw .impossibleLimit
        }
        guard timeToLiveBounds.upperBound <= AnswerNormalizer.longest.positive else { throw .impossibleLimit }
        var names = LocalNames()
        for record in records {
            do throws(LocalRecordError) { try names.add(record) } catch { throw .impossibleRecord(error) }
        }
        if case .prefix(let prefix) = dns64, TranslationPrefix(prefix) == nil { throw .impossiblePrefix(prefix) }
    }
}

/// Whether IPv6 addresses are made for names that have none, for a network whose translator leads them to IPv4 (RFC 6147).
public enum DNS64: Equatable, Sendable {
    /// They are not.
    case off
    /// With the prefix that the servers' answers show (RFC 7050); none are made while there is none.
    case automatic
    /// With this prefix, of a length of RFC 6052 §2.2.
    case prefix(IPPrefix)
}

/// Why a proxy cannot be started.
public enum DNSProxyError: Error, Hashable, Sendable {
    /// There is no server, or a route leads to none.
    case noUpstream
    /// A server is named that is not there.
    case unknownUpstream(UpstreamID)
    /// A time or a limit is zero, or too long.
    case impossibleLimit
    /// It is not a prefix that IPv4 addresses can be put behind.
    case impossiblePrefix(IPPrefix)
    /// Two records do not go together, or one cannot be given out.
    case impossibleRecord(LocalRecordError)
}

extension DNSProxyError: PubliclyLoggable, CustomStringConvertible {
    /// What is wrong.
    public var description: String {
        switch self {
        case .noUpstream: "there is no upstream to ask"
        case .unknownUpstream: "a route names an upstream that is not there"
        case .impossibleLimit: "a time or a limit is zero, or too long"
        case .impossiblePrefix: "a prefix for DNS64 has a length that it must not have"
        case .impossibleRecord(let error): "a record \(error)"
        }
    }
}
