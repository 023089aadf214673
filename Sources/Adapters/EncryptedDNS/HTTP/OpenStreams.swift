internal import Provider

/// The streams of a session that are open, by their numbers. Places are used again.
struct OpenStreams {
    private var exchanges: [HTTPExchange] = []
    private var free: [Int] = []
    private var slots = NumberTable()
    /// How many bytes of unfinished bodies there are.
    private(set) var receivedCount = 0

    mutating func add(_ stream: Int32, _ exchange: HTTPExchange) {
        let slot = free.popLast() ?? exchanges.count
        if slot == exchanges.count { exchanges.append(exchange) } else { exchanges[slot] = exchange }
        slots.set(slot, for: Self.number(of: stream))
    }

    /// Takes a stream out; nil when it is not open.
    mutating func remove(_ stream: Int32) -> HTTPExchange? {
        guard let slot = slots.remove(Self.number(of: stream)) else { return nil }
        free.append(slot)
        var exchange = HTTPExchange(query: [], queryID: 0)
        swap(&exchange, &exchanges[slot])
        receivedCount -= exchange.receivedCount
        return exchange
    }

    /// Reads a stream and lets it be changed; nil when it is not open.
    mutating func change<Result>(
        _ stream: Int32, _ body: (inout HTTPExchange) throws(ConnectionError) -> Result
    ) throws(ConnectionError) -> Result? {
        guard let slot = slots[Self.number(of: stream)] else { return nil }
        let before = exchanges[slot].receivedCount
        let result = try body(&exchanges[slot])
        receivedCount += exchanges[slot].receivedCount - before
        return result
    }

    private static func number(of stream: Int32) -> UInt64 { UInt64(UInt32(bitPattern: stream)) }
}
