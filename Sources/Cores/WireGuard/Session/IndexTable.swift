/// Finds what a receiver index names: an open hash table with linear probing. Indices are random numbers of our own choice,
/// so that their low bits are as good as a hash, and nobody else can choose them to collide.
struct IndexTable {
    /// What an index names.
    enum Entry {
        /// A handshake that a peer is to answer.
        case handshake(PeerIndex)
        /// A session.
        case session(PeerIndex, Keypair)

        /// The peer it belongs to.
        var peer: PeerIndex {
            switch self {
            case .handshake(let peer), .session(let peer, _): peer
            }
        }
    }

    private struct Slot {
        var index: UInt32
        var entry: Entry?
    }

    private var slots = ContiguousArray(repeating: Slot(index: 0, entry: nil), count: 64)
    private(set) var count = 0

    private var mask: Int { slots.count - 1 }

    /// What `index` names, or nil.
    subscript(index: UInt32) -> Entry? {
        guard let slot = slot(of: index) else { return nil }
        return slots[slot].entry
    }

    /// A random index that is not in use.
    func unusedIndex(entropy: inout Entropy) -> UInt32 {
        while true {
            let candidate: UInt32 = entropy.next()
            if slot(of: candidate) == nil { return candidate }
        }
    }

    /// Lets `index` name `entry`, whatever it named before.
    mutating func set(_ index: UInt32, to entry: Entry) {
        if let slot = slot(of: index) {
            slots[slot].entry = entry
            return
        }
        if (count + 1) * 2 > slots.count { grow() }
        insert(Slot(index: index, entry: entry))
        count += 1
    }

    /// Lets `index` name nothing.
    mutating func remove(_ index: UInt32) {
        guard var hole = slot(of: index) else { return }
        count -= 1
        // Entries behind the hole move up, so that no probe for them stops at it.
        var probe = (hole + 1) & mask
        while slots[probe].entry != nil {
            let home = Int(slots[probe].index) & mask
            if (probe - home) & mask >= (probe - hole) & mask {
                slots[hole] = slots[probe]
                hole = probe
            }
            probe = (probe + 1) & mask
        }
        slots[hole].entry = nil
    }

    private func slot(of index: UInt32) -> Int? {
        var probe = Int(index) & mask
        while slots[probe].entry != nil {
            if slots[probe].index == index { return probe }
            probe = (probe + 1) & mask
        }
        return nil
    }

    private mutating func insert(_ slot: Slot) {
        var probe = Int(slot.index) & mask
        while slots[probe].entry != nil { probe = (probe + 1) & mask }
        slots[probe] = slot
    }

    private mutating func grow() {
        let old = slots
        slots = ContiguousArray(repeating: Slot(index: 0, entry: nil), count: old.count * 2)
        for slot in old where slot.entry != nil { insert(slot) }
    }
}
