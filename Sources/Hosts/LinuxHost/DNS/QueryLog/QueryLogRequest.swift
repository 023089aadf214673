internal import Provider

/// What a program wants to see of the query log.
struct QueryLogRequest: Equatable, Sendable {
    /// How many queries one answer has at most: as many as fit into a connection's buffer whatever their names are.
    static let limit = 128

    /// The number of the first query; nil for the oldest that there is.
    var first: UInt64?
    /// How long the answer may be held when there is no such query yet.
    var timeLimit = Interval(nanoseconds: 0)

    /// A request for what there is.
    init(from first: UInt64? = nil, timeLimit: Interval = Interval(nanoseconds: 0)) {
        (self.first, self.timeLimit) = (first, timeLimit)
    }
}
