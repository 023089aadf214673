internal import DNSProxy
internal import Provider

/// Where an exchange is under way.
enum ExchangePlace {
    /// By a datagram from the socket with this token.
    case datagram(UInt64)
    /// On a connection, since it was sent.
    case stream(StreamSocket, since: Instant, patience: Interval)
    /// Nowhere yet.
    case waiting(ServerUpstream)
    /// Nowhere yet: there are as many datagrams under way as there may be.
    case queued
}

/// Where the exchanges are that have not ended. Nothing is allocated but for more of them than there were before.
struct ExchangePlaces {
    private var places: [ExchangePlace?] = []
    private var free: [Int] = []
    private var slots = NumberTable()

    /// Notes where an exchange is.
    mutating func set(_ place: ExchangePlace, for exchange: ExchangeID) {
        if let slot = slots[exchange.rawValue] {
            places[slot] = place
            return
        }
        let slot = free.popLast() ?? places.count
        if slot == places.count { places.append(place) } else { places[slot] = place }
        slots.set(slot, for: exchange.rawValue)
    }

    /// An exchange has ended. Returns where it was; nil when it had ended before.
    @discardableResult
    mutating func remove(_ exchange: ExchangeID) -> ExchangePlace? {
        guard let slot = slots.remove(exchange.rawValue) else { return nil }
        free.append(slot)
        return places[slot].take()
    }

    /// All exchanges have ended.
    mutating func removeAll() { self = ExchangePlaces() }
}
