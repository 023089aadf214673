internal import Provider

/// Notices that the machine slept: the clock that counts sleep has run ahead of the one that does not.
struct SleepDetector {
    /// Less than this is no sleep: the two clocks are read one after the other.
    private static let least = Interval.seconds(1)

    /// How far the clocks are apart, in nanoseconds.
    private var distance: UInt64

    /// Begins with the two clocks as they are.
    init(boot: Instant = HostClock.now(), monotonic: Instant = HostClock.monotonic()) {
        distance = boot.since(monotonic).nanoseconds
    }

    /// How long the machine slept since the last call; nil when it did not.
    mutating func sleep(boot: Instant = HostClock.now(), monotonic: Instant = HostClock.monotonic()) -> Interval? {
        let current = boot.since(monotonic).nanoseconds
        guard current > distance, Interval(nanoseconds: current - distance) >= Self.least else { return nil }
        defer { distance = current }
        return Interval(nanoseconds: current - distance)
    }
}
