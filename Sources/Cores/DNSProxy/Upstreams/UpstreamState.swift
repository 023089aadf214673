internal import Provider

/// A server while the proxy runs.
struct UpstreamState: Sendable {
    let upstream: DNSUpstream
    var health = UpstreamHealth()
    var roundTripTime = RoundTripTime()
    var latency = LatencyHistogram()
    var exchanges: UInt64 = 0
    var answers: UInt64 = 0
    var failures: UInt64 = 0
    var lastFailure: ExchangeFailure?
    var failureCounts = ExchangeFailureCounts()
    var losesCase = false

    /// A server that nothing is known of yet.
    init(upstream: DNSUpstream) {
        self.upstream = upstream
    }

    /// The server answered, so long after the exchange began.
    mutating func noteAnswer(after time: Interval) {
        answers += 1
        health.noteAnswer()
        roundTripTime.note(time)
        latency.note(time)
    }

    /// An exchange came to nothing.
    mutating func note(_ failure: ExchangeFailure, at now: Instant) {
        failures += 1
        lastFailure = failure
        failureCounts.note(failure)
        health.note(failure, at: now)
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
