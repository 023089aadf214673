import IPPacket
import Provider

/// Limits how many handshakes one source may ask for while the device is under load: a token bucket of 20 a second and a
/// burst of 5 for each IPv4 address and each IPv6 /64 (Linux). A source is forgotten after a second of silence.
struct HandshakeRateLimiter {
    private static let cost: UInt64 = 1_000_000_000 / 20
    private static let capacity: UInt64 = cost * 5
    private static let lifetime = Interval.seconds(1)
    /// The most sources that are known at once: what an attacker with many addresses can make us store.
    static let maximumSources = 8192

    private struct Bucket {
        /// What the source may still spend, in nanoseconds.
        var tokens: UInt64
        var updated: Instant
    }

    private var buckets: [IPAddress: Bucket] = [:]
    private var nextSweep = Instant(nanoseconds: 0)

    /// True when one more handshake from `address` is within its limit.
    mutating func allows(_ address: IPAddress, at now: Instant) -> Bool {
        sweep(at: now)
        let source = Self.source(of: address)
        guard let bucket = buckets[source] else {
            guard buckets.count < Self.maximumSources else { return false }
            buckets[source] = Bucket(tokens: Self.capacity - Self.cost, updated: now)
            return true
        }
        let tokens = min(bucket.tokens + now.since(bucket.updated).nanoseconds, Self.capacity)
        let isAllowed = tokens >= Self.cost
        buckets[source] = Bucket(tokens: isAllowed ? tokens - Self.cost : tokens, updated: now)
        return isAllowed
    }

    private mutating func sweep(at now: Instant) {
        guard now >= nextSweep else { return }
        buckets = buckets.filter { now.since($0.value.updated) < Self.lifetime }
        nextSweep = now + Self.lifetime
    }

    private static func source(of address: IPAddress) -> IPAddress {
        switch address {
        case .v4: address
        case .v6(let address): .v6(IPv6Address(high: address.high, low: 0))
        }
    }
}
