/// What became of a client's query that was answered: each has exactly one result.
public enum QueryResult: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    /// It was answered from the cache.
    case cached
    /// It was answered with what is too old, because no server answered.
    case stale
    /// It got a server's answer.
    case forwarded
    /// A rule blocks its name, or what the answer leads to.
    case blocked
    /// The answer would have led to the inside.
    case rebinding
    /// It was answered from what standards or the configuration say.
    case local
    /// It was not in order, or of a kind that is not answered.
    case refused
    /// No server could answer, or none wanted to.
    case failed
    /// There was no room for it.
    case overloaded
}

/// How many queries were answered, by transport and result.
public struct QueryResultCounts: Equatable, Sendable {
    // A row of 16 places for each of four transports.
    private var counts = InlineArray<64, UInt64>(repeating: 0)

    /// None yet.
    public init() {}

    /// How many came by a transport and had a result.
    public subscript(transport: ClientTransport, result: QueryResult) -> UInt64 {
        counts[Self.place(transport, result)]
    }

    /// How many there were in all.
    public var total: UInt64 {
        var total: UInt64 = 0
        for place in counts.indices { total &+= counts[place] }
        return total
    }

    @inline(__always)
    mutating func note(_ result: QueryResult, _ transport: ClientTransport) {
        counts[Self.place(transport, result)] &+= 1
    }

    @inline(__always)
    private static func place(_ transport: ClientTransport, _ result: QueryResult) -> Int {
        Int(transport.rawValue & 3) << 4 | Int(result.rawValue & 15)
    }

    /// True when all counts are the same.
    public static func == (left: Self, right: Self) -> Bool {
        left.counts.indices.allSatisfy { left.counts[$0] == right.counts[$0] }
    }
}
