internal import Provider

/// Which question is under way in which slot.
///
/// A question is found by its hash, which is the standard library's: nobody outside knows its seed, so that nobody can choose names that
/// collide. When two do all the same, the later one alone is found: the earlier one is not waited for together.
struct LookupKeys: Sendable {
    private var slots = NumberTable()
    /// What the slots hold: the question, with its hash.
    private var keys: [(hash: UInt64, key: [UInt8])] = []

    /// The slot of a question; nil when it is not under way.
    func slot(of key: [UInt8]) -> Int? {
        // To find out that there is none at all takes no hash.
        guard slots.count > 0, let slot = slots[Self.hash(of: key)], keys[slot].key == key else { return nil }
        return slot
    }

    /// A question is under way in this slot, which is free.
    mutating func insert(_ key: [UInt8], _ slot: Int) {
        let hash = Self.hash(of: key)
        while keys.count <= slot { keys.append((0, [])) }
        keys[slot] = (hash, key)
        slots.set(slot, for: hash)
    }

    /// What was under way in this slot is over.
    mutating func remove(_ slot: Int) {
        let hash = keys[slot].hash
        if slots[hash] == slot { slots.remove(hash) }
        keys[slot] = (0, [])
    }

    private static func hash(of key: [UInt8]) -> UInt64 {
        var hasher = Hasher()
        // The bytes are the key's own, and live for the call.
        unsafe key.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}
