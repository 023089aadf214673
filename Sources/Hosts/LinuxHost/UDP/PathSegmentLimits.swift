internal import IPPacket
internal import Provider

/// Remembers for a while which destinations got no trains through, and from which length of a datagram on: the route's MTU is
/// smaller. Shorter datagrams still leave in trains. Bounded: when a destination too many comes, the entry that expires first
/// makes place for it.
struct PathSegmentLimits: ~Copyable {
    /// How long a refusal is believed. Then one train tries again, which costs one failing call.
    static let lifetime = Interval.seconds(60)
    /// How many destinations are remembered.
    static let capacity = 16

    private struct Entry {
        var address: IPAddress
        /// The shortest datagram that did not pass in a train.
        var refusedLength: Int
        var expiry: Instant
    }

    private var entries = InlineArray<16, Entry?>(repeating: nil)
    /// How many entries are in use, those past their time among them.
    private(set) var count = 0

    /// True when datagrams of `length` bytes may go to `address` in trains.
    @inline(__always)
    mutating func allows(_ length: Int, to address: IPAddress, at now: Instant) -> Bool {
        count == 0 || search(length, address, now)
    }

    /// Remembers that datagrams of `length` bytes did not pass to `address` in a train.
    mutating func refuse(_ length: Int, to address: IPAddress, at now: Instant) {
        removeExpired(at: now)
        let expiry = now + Self.lifetime
        var place = 0
        for index in entries.indices {
            guard let entry = entries[index] else {
                if entries[place] != nil { place = index }
                continue
            }
            if entry.address == address {
                entries[index] = Entry(
                    address: address, refusedLength: min(length, entry.refusedLength), expiry: expiry)
                return
            }
            if let candidate = entries[place], entry.expiry < candidate.expiry { place = index }
        }
        if entries[place] == nil { count += 1 }
        entries[place] = Entry(address: address, refusedLength: length, expiry: expiry)
    }

    /// Forgets what was remembered about `address`.
    mutating func forget(_ address: IPAddress) {
        for index in entries.indices where entries[index]?.address == address {
            entries[index] = nil
            count -= 1
        }
    }

    /// Forgets everything.
    mutating func removeAll() {
        for index in entries.indices { entries[index] = nil }
        count = 0
    }

    private mutating func search(_ length: Int, _ address: IPAddress, _ now: Instant) -> Bool {
        removeExpired(at: now)
        for index in entries.indices {
            if let entry = entries[index], entry.address == address { return length < entry.refusedLength }
        }
        return true
    }

    private mutating func removeExpired(at now: Instant) {
        for index in entries.indices {
            if let entry = entries[index], entry.expiry <= now {
                entries[index] = nil
                count -= 1
            }
        }
    }
}
