internal import Provider

/// A server while the proxy runs.
struct UpstreamState: Sendable {
    /// For how long it is believed how fast a server is without asking it.
    private static let comparisonInterval = Interval.seconds(60)
    /// What is added to a server's usual time for the first exchange in a row that came to nothing; twice as much for each further one.
    private static let penalty = Interval.milliseconds(100)

    let upstream: DNSUpstream
    var health = UpstreamHealth()
    /// How long its answers take.
    private var roundTripTime = RoundTripTime()
    /// The same, with answers that did not come in time: what it is compared with other servers by.
    private var comparedTime = RoundTripTime()
    var latency = LatencyHistogram()
    var exchanges: UInt64 = 0
    var answers: UInt64 = 0
    var failures: UInt64 = 0
    var lastFailure: ExchangeFailure?
    var failureCounts = ExchangeFailureCounts()
    var losesCase = false
    var haste = HasteBudget()
    private var lastAnswer: Instant?

    /// A server that nothing is known of yet.
    init(upstream: DNSUpstream) {
        self.upstream = upstream
    }

    /// The server answered an exchange that began at `begin`.
    mutating func noteAnswer(since begin: Instant, at now: Instant) {
        answers += 1
        lastAnswer = now
        // How long it was silent for says nothing about how fast it is now that it is back.
        if health.wasDown { comparedTime = RoundTripTime() }
        health.noteAnswer()
        haste.noteAnswer()
        let time = now.since(begin)
        roundTripTime.note(time, at: now)
        comparedTime.note(time, at: now)
        latency.note(time)
    }

    /// True when something came from the server after `begin`: it is there, whatever it has not answered yet.
    func hasAnswered(since begin: Instant) -> Bool { lastAnswer.map { $0 > begin } ?? false }

    /// An exchange that began at `begin` has had its time, and no answer yet.
    mutating func noteSilence(since begin: Instant, at now: Instant) {
        comparedTime.note(atLeast: now.since(begin), at: now)
        if !hasAnswered(since: begin) { health.note(.timedOut, at: now) }
    }

    /// An exchange came to nothing.
    mutating func note(_ failure: ExchangeFailure, at now: Instant) {
        countFailure(failure)
        health.note(failure, at: now)
    }

    /// An exchange came to nothing, which has been noted before.
    mutating func countFailure(_ failure: ExchangeFailure) {
        failures += 1
        lastFailure = failure
        failureCounts.note(failure)
    }

    /// Another server was faster with an exchange that began at `begin`.
    mutating func noteLostRace(since begin: Instant, at now: Instant) {
        comparedTime.note(atLeast: now.since(begin), at: now)
    }

    /// The network is another one: what was known of the ways to the server does not hold.
    mutating func startOver() {
        health = UpstreamHealth()
        roundTripTime = RoundTripTime()
        comparedTime = RoundTripTime()
        lastAnswer = nil
    }

    /// How long its answers take, failures included. Of a server that was never asked nothing is known: it comes behind all others.
    var usualTime: Interval {
        guard let smoothed = comparedTime.smoothed else { return .endless }
        guard health.failuresInARow > 0 else { return smoothed }
        let doublings = UInt64(min(health.failuresInARow - 1, 6))
        return smoothed + Interval(nanoseconds: Self.penalty.nanoseconds << doublings)
    }

    /// True when it is not known any more how fast the server is.
    func isDueForComparison(at now: Instant) -> Bool {
        guard let notedAt = comparedTime.notedAt else { return true }
        return health.awaitsProbation(at: now) || now.since(notedAt) >= Self.comparisonInterval
    }

    /// How long after its begin an exchange is late; nil while that is not known.
    ///
    /// - Parameters:
    ///   - least: What it is at least.
    ///   - connects: True when a connection has to be made first: TCP's and TLS's handshakes take as long again.
    func limit(atLeast least: Interval, connects: Bool) -> Interval? {
        roundTripTime.limit.map { max(least, connects ? $0 + $0 : $0) }
    }

    /// How the server is doing.
    func status(at now: Instant) -> UpstreamStatus {
        UpstreamStatus(
            name: upstream.name, transport: upstream.transport, isDown: health.isDown(at: now), exchanges: exchanges,
            answers: answers, failures: failures, lastFailure: lastFailure, failureCounts: failureCounts,
            losesCase: losesCase,
            roundTripTime: roundTripTime.smoothed, latency: latency)
    }
}
