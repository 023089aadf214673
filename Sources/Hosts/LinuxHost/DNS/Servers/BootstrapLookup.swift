internal import IPPacket
internal import Provider

/// The look-up of an upstream's name, asked of the resolvers of the configuration one after the other.
final class BootstrapLookup {
    let upstream: ServerUpstream
    /// For IPv6 and IPv4.
    var questions: [BootstrapQuestion] = []
    /// How many resolvers were asked.
    var attemptCount = 0
    /// When the next resolver is asked, or what came is made do with.
    var deadline: Instant

    /// How long a resolver may take; twice as long when all have been asked before.
    static let patience = Interval.seconds(1)
    /// How much longer one family is waited for when the other is there.
    static let familyPatience = Interval.milliseconds(200)
    /// How often all resolvers are asked.
    static let roundCount = 2

    /// A look-up for which nobody has been asked.
    init(_ upstream: ServerUpstream, at now: Instant) {
        self.upstream = upstream
        deadline = now
    }

    /// True when nothing more is to come from this resolver.
    var isComplete: Bool {
        questions.allSatisfy {
            if case .asked = $0.state { false } else { true }
        }
    }

    /// The addresses that came, a family after the other in turn, IPv6 first (RFC 8305 §4), and how long they hold.
    var result: (addresses: [IPAddress], interval: Interval) {
        var families: [[IPAddress]] = []
        var timeToLive = UInt32.max
        for question in questions {
            guard case .answered(let addresses, let seconds) = question.state, !addresses.isEmpty else { continue }
            families.append(addresses)
            timeToLive = min(timeToLive, seconds)
        }
        var all: [IPAddress] = []
        for index in 0..<(families.map(\.count).max() ?? 0) {
            for family in families where index < family.count { all.append(family[index]) }
        }
        return (all, .seconds(UInt64(timeToLive)))
    }
}
