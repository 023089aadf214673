public import Provider

/// How long a server took for its answers: how many there are in each of a few fixed ranges.
///
/// Counting allocates nothing, unless somebody else has a copy.
public struct LatencyHistogram: Equatable, Sendable {
    /// The longest time of each range in milliseconds, in rising order. What took longer is in one more range behind them.
    public static let bounds: [UInt32] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]

    /// How many answers there are in each range: one number more than there are bounds. An answer is in one range only.
    public private(set) var counts = [UInt64](repeating: 0, count: LatencyHistogram.bounds.count + 1)
    /// How long all answers took together.
    public private(set) var sum = Interval(nanoseconds: 0)

    /// No answer yet.
    public init() {}

    /// How many answers there are.
    public var count: UInt64 { counts.reduce(0, +) }

    /// Counts an answer.
    public mutating func note(_ time: Interval) {
        let index = Self.bounds.firstIndex { time <= .milliseconds(UInt64($0)) } ?? Self.bounds.count
        counts[index] &+= 1
        sum = sum + time
    }
}
