public import Provider

/// The time of a simulation. It moves only when told to, so that days pass in milliseconds. The monotonic clock and the wall
/// clock are separate: stepping one leaves the other as it is, as on a machine whose time of day is corrected.
public struct VirtualClock: Sendable {
    /// The monotonic time: never steps back, runs during a suspension.
    public private(set) var now: Instant
    /// The time of day at the moment when the monotonic clock read `reference`.
    private var wallClockAtReference: WallClockTime
    private var reference: Instant

    /// A clock whose monotonic time is `now` and whose time of day is `wallClock`.
    public init(
        now: Instant = Instant(nanoseconds: 1_000_000_000_000),
        wallClock: WallClockTime = WallClockTime(seconds: 1_750_000_000, nanoseconds: 0)
    ) {
        self.now = now
        reference = now
        wallClockAtReference = wallClock
    }

    /// The time of day.
    public var wallClock: WallClockTime {
        wallClockAtReference.advanced(by: now.since(reference))
    }

    /// Moves both clocks to the monotonic time `instant`, which must not lie in the past.
    public mutating func advance(to instant: Instant) {
        precondition(instant >= now, "a clock that steps back")
        now = instant
    }

    /// Sets the time of day; the monotonic time stays.
    public mutating func setWallClock(_ time: WallClockTime) {
        wallClockAtReference = time
        reference = now
    }
}

extension WallClockTime {
    /// The time of day `interval` later.
    public func advanced(by interval: Interval) -> WallClockTime {
        let total = UInt64(nanoseconds) + interval.nanoseconds % 1_000_000_000
        return WallClockTime(
            seconds: seconds + interval.nanoseconds / 1_000_000_000 + total / 1_000_000_000,
            nanoseconds: UInt32(total % 1_000_000_000))
    }
}
