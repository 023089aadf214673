/// A point on the clock that the host hands to every core: nanoseconds since an origin of the host's choice, on a clock
/// that never steps back and keeps running while the machine sleeps (Linux `CLOCK_BOOTTIME`, Apple
/// `mach_continuous_time`). Key ages and deadlines that ignored sleep would outlive their limits.
public struct Instant: Hashable, Comparable, Sendable {
    /// Nanoseconds since the host's origin.
    public var nanoseconds: UInt64

    /// An instant `nanoseconds` after the host's origin.
    @inlinable
    public init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// Orders earlier instants first.
    @inlinable
    public static func < (left: Instant, right: Instant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The instant `interval` after `instant`, or the last representable one.
    @inlinable
    public static func + (instant: Instant, interval: Interval) -> Instant {
        let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(interval.nanoseconds)
        return Instant(nanoseconds: overflow ? .max : sum)
    }

    /// How long after `earlier` this instant is; zero when it is not later.
    @inlinable
    public func since(_ earlier: Instant) -> Interval {
        Interval(nanoseconds: nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0)
    }
}

/// A length of time in nanoseconds, never negative.
public struct Interval: Hashable, Comparable, Sendable {
    /// The length in nanoseconds.
    public var nanoseconds: UInt64

    /// An interval of `nanoseconds`.
    @inlinable
    public init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// An interval of whole seconds.
    @inlinable
    public static func seconds(_ seconds: UInt64) -> Interval {
        Interval(nanoseconds: seconds * 1_000_000_000)
    }

    /// An interval of whole milliseconds.
    @inlinable
    public static func milliseconds(_ milliseconds: UInt64) -> Interval {
        Interval(nanoseconds: milliseconds * 1_000_000)
    }

    /// Orders shorter intervals first.
    @inlinable
    public static func < (left: Interval, right: Interval) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The sum of two intervals.
    @inlinable
    public static func + (left: Interval, right: Interval) -> Interval {
        Interval(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }
}
