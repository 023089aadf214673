internal import Provider

/// How long a server usually takes for an answer, smoothed as TCP smooths its round-trip time (RFC 6298 §2).
struct RoundTripTime: Sendable {
    /// The smoothed time; nil before anything is known.
    private(set) var smoothed: Interval?
    private var variation = Interval(nanoseconds: 0)

    /// An answer came after so long.
    mutating func note(_ time: Interval) {
        guard let before = smoothed?.nanoseconds else {
            smoothed = time
            variation = Interval(nanoseconds: time.nanoseconds / 2)
            return
        }
        let difference = max(before, time.nanoseconds) - min(before, time.nanoseconds)
        variation = Interval(nanoseconds: (variation.nanoseconds * 3 + difference) / 4)
        smoothed = Interval(nanoseconds: (before * 7 + time.nanoseconds) / 8)
    }

    /// No answer had come when nobody waited for it any more. That tells something only when it is longer than usual.
    mutating func note(atLeast time: Interval) {
        guard let smoothed, time > smoothed else { return }
        note(time)
    }

    /// After how long an answer that has not come is late; nil while nothing is known. RFC 6298 §2.3 would have it earlier where times
    /// vary little, which they do only as long as servers have all answers at hand.
    var limit: Interval? {
        guard let smoothed = smoothed?.nanoseconds else { return nil }
        return Interval(nanoseconds: max(4 * smoothed, smoothed + 4 * variation.nanoseconds))
    }
}
