internal import Provider

/// Whether a server is worth asking first.
///
/// ```
///              three failures in a row, or one that is certain
///   up ──────────────────────────────────────────────────────▶ down for a while
///    ▲                                                            │ the time is over, a query comes
///    │ any answer                                                 ▼
///    └──────────────────────────────────────────────────────── on probation
///                                                                 │ failure: down for twice as long
///                                                                 └──────▶ down for a while
/// ```
///
/// A server that is down is asked only after all others; on probation one query is put to it first, and soon to the next as well.
struct UpstreamHealth: Sendable {
    /// How long a server is left alone after its first failures, and at most.
    static let pause: (first: Interval, longest: Interval) = (.seconds(1), .seconds(30))
    /// How many silent exchanges in a row make a server one that is down.
    static let silenceLimit = 3

    private(set) var failuresInARow = 0
    private var pauses = 0
    private var downUntil: Instant?
    private var isOnProbation = false

    /// True when the server is asked after all others.
    func isDown(at now: Instant) -> Bool {
        guard let downUntil else { return false }
        return now < downUntil || isOnProbation
    }

    /// True when it was found to be down, and has not answered since.
    var wasDown: Bool { downUntil != nil }

    /// True when a query may tell whether it is back.
    func awaitsProbation(at now: Instant) -> Bool {
        guard let downUntil else { return false }
        return now >= downUntil && !isOnProbation
    }

    /// Called when the server is about to be asked first. True when this is the query that tells whether it is back.
    mutating func beginProbation(at now: Instant) -> Bool {
        guard awaitsProbation(at: now) else { return false }
        isOnProbation = true
        return true
    }

    /// The server answered.
    mutating func noteAnswer() {
        self = UpstreamHealth()
    }

    /// An exchange came to nothing.
    mutating func note(_ failure: ExchangeFailure, at now: Instant) {
        guard failure.concernsHealth else { return }
        failuresInARow += 1
        let isCertain = !failure.isWorthAFreshConnection
        guard isCertain || isOnProbation || failuresInARow >= Self.silenceLimit else { return }
        // What fails while the server is known to be down tells nothing new.
        if let downUntil, now < downUntil { return }
        isOnProbation = false
        let length = min(Self.pause.first.nanoseconds << UInt64(min(pauses, 10)), Self.pause.longest.nanoseconds)
        pauses += 1
        downUntil = now + Interval(nanoseconds: length)
    }

    /// A query that was to tell whether the server is back told nothing.
    mutating func endProbation() {
        isOnProbation = false
    }

    /// A query that was to tell whether the server is back was answered by another one first: it is tried again a little later.
    mutating func postponeProbation(at now: Instant) {
        guard isOnProbation else { return }
        isOnProbation = false
        downUntil = now + Self.pause.first
    }
}
