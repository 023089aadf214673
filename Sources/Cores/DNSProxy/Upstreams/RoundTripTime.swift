internal import Provider

/// How long a server usually takes for an answer, smoothed as TCP smooths its round-trip time (RFC 6298 §2).
struct RoundTripTime: Sendable {
    /// How old what is known may become: it is replaced then, not smoothed.
    private static let memory = Interval.seconds(60)
    /// The smoothed time; nil before anything is known.
    private(set) var smoothed: Interval?
    /// When something was last learnt.
    private(set) var notedAt: Instant?
    private var variation = Interval(nanoseconds: 0)

    /// An answer came after so long.
    mutating func note(_ time: Interval, at now: Instant) {
        let isOld = notedAt.map { now.since($0) >= Self.memory } ?? true
        notedAt = now
        guard let before = smoothed?.nanoseconds, !isOld else {
            smoothed = time
            variation = Interval(nanoseconds: time.nanoseconds / 2)
            return
        }
        let difference = max(before, time.nanoseconds) - min(before, time.nanoseconds)
        variation = Interval(nanoseconds: (variation.nanoseconds * 3 + difference) / 4)
        smoothed = Interval(nanoseconds: (before * 7 + time.nanoseconds) / 8)
    }

    /// No answer had come for so long. That tells nothing when it is no longer than usual; where nothing is known, the answer is
    /// expected after as long again.
    mutating func note(atLeast time: Interval, at now: Instant) {
        guard let smoothed else { return note(time + time, at: now) }
        if time > smoothed { note(time, at: now) } else { notedAt = now }
    }

    /// After how long an answer that has not come is late; nil while nothing is known. RFC 6298 §2.3 would have it earlier where times
    /// vary little, which they do only as long as servers have all answers at hand.
    var limit: Interval? {
        guard let smoothed = smoothed?.nanoseconds else { return nil }
        return Interval(nanoseconds: max(4 * smoothed, smoothed + 4 * variation.nanoseconds))
    }
}
