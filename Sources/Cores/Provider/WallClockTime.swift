/// A time of day for people and peers: seconds and nanoseconds since 1970-01-01T00:00:00Z. It may step either way, so it is
/// used only where a protocol or a reader asks for it, never to measure an age.
public struct WallClockTime: Hashable, Comparable, Sendable {
    /// Whole seconds since the epoch.
    public var seconds: UInt64
    /// Nanoseconds within the second, below 1,000,000,000.
    public var nanoseconds: UInt32

    /// A time of day.
    @inlinable
    public init(seconds: UInt64, nanoseconds: UInt32) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Orders earlier times first.
    @inlinable
    public static func < (left: WallClockTime, right: WallClockTime) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}
