import Provider

/// Limits the ICMP errors that a device writes to its TUN: 50 at once and 100 a second, for all senders together, as a host
/// behind a wrong route can ask for an answer with every packet (RFC 4443, section 2.4 (f)).
struct UnreachableLimiter {
    private static let cost: UInt64 = 1_000_000_000 / 100
    private static let capacity: UInt64 = cost * 50

    private var tokens = Self.capacity
    private var updated = Instant(nanoseconds: 0)

    /// True when one more error may be written.
    mutating func allowsOne(at now: Instant) -> Bool {
        tokens = min(tokens + min(now.since(updated).nanoseconds, Self.capacity), Self.capacity)
        updated = now
        guard tokens >= Self.cost else { return false }
        tokens -= Self.cost
        return true
    }
}
