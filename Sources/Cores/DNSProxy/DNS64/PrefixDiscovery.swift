internal import IPPacket
internal import Provider

/// Which prefix DNS64 uses, and when servers are asked for it (RFC 7050 §3).
///
/// ```
///          automatic, another network                a prefix: until shortly before its TTL is over
///   off ─────────────────────────────▶ due ──▶ asked ──────────────────────────────────────────────▶ known
///                                       ▲         │ no prefix, or no answer                            │
///                                       │         └────────────────▶ waits ──┐                         │
///                                       └────────────────────────────────────┴─────────────────────────┘
/// ```
///
/// A prefix stays in use when a server could not answer, for as long as the network is the same: an answer without one ends it.
struct PrefixDiscovery: Sendable {
    /// When to ask again after an answer without a prefix, and after none.
    static let pause: (absent: Interval, failed: Interval) = (.seconds(300), .seconds(30))
    /// The shortest and the longest time that a prefix is used without asking again, in seconds.
    static let lifetime: ClosedRange<UInt32> = 60...86_400
    /// How long before the end of its time a prefix is asked for again, in seconds (RFC 7050 §3).
    static let lead: UInt32 = 10

    /// The prefix; nil while there is none.
    private(set) var prefix: TranslationPrefix?
    /// When to ask; nil for never, and while the answer is awaited.
    private(set) var nextQuestion: Instant?
    private var isAutomatic = false

    /// Follows another configuration.
    mutating func adopt(_ dns64: DNS64, at now: Instant) {
        self = PrefixDiscovery()
        switch dns64 {
        case .off: break
        case .automatic: (isAutomatic, nextQuestion) = (true, now)
        case .prefix(let prefix): self.prefix = TranslationPrefix(prefix)
        }
    }

    /// Forgets a prefix that was asked for: the network is another one.
    mutating func startOver(at now: Instant) {
        if isAutomatic { (prefix, nextQuestion) = (nil, now) }
    }

    /// A server is being asked.
    mutating func noteQuestion() {
        nextQuestion = nil
    }

    /// A server answered: with addresses of `ipv4only.arpa`, or with none.
    mutating func noteAnswer(_ addresses: [IPAddress], timeToLive: UInt32, at now: Instant) {
        guard isAutomatic else { return }
        prefix = Self.prefix(of: addresses)
        let seconds = min(max(timeToLive, Self.lifetime.lowerBound), Self.lifetime.upperBound) - Self.lead
        nextQuestion = now + (prefix == nil ? Self.pause.absent : .seconds(UInt64(seconds)))
    }

    /// No server could answer.
    mutating func noteFailure(at now: Instant) {
        if isAutomatic { nextQuestion = now + Self.pause.failed }
    }

    /// The prefix of the addresses that `ipv4only.arpa` was given: the one that fits both of its own addresses, or else the first that
    /// fits one, the longest first (RFC 7050 §3).
    static func prefix(of addresses: [IPAddress]) -> TranslationPrefix? {
        var found: TranslationPrefix?
        for case .v6(let address) in addresses where address.mappedIPv4 == nil {
            for length in [96, 64, 56, 48, 40, 32] as [UInt8] {
                guard let candidate = TranslationPrefix(IPPrefix(address: .v6(address), length: length)),
                    let embedded = candidate.embedded(in: address), IPv4OnlyName.addresses.contains(embedded)
                else { continue }
                let fitsBoth = IPv4OnlyName.addresses.allSatisfy { own in
                    addresses.contains { other in
                        guard case .v6(let other) = other else { return false }
                        return candidate.embedded(in: other) == own
                    }
                }
                if fitsBoth { return candidate }
                if found == nil { found = candidate }
            }
        }
        return found
    }
}
