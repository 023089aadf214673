/// Finds small numbers, which are places in an array for the most part, by numbers that the program gives out itself. Nothing is allocated
/// but to grow.
///
/// It is an open-addressing hash table with linear probing and Fibonacci hashing (Knuth, The Art of Computer Programming 3, §6.4). Keys
/// that strangers choose do not belong into it: they could be chosen to meet.
public struct NumberTable: Sendable {
    private struct Entry {
        var key: UInt64
        /// Negative where there is no entry.
        var value: Int
    }

    private static let leastCapacity = 16
    /// How many places are kept when nothing is left.
    private static let keptCapacity = 1024

    private var entries: [Entry] = []
    /// How many numbers are in it.
    public private(set) var count = 0

    /// An empty table.
    public init() {}

    /// The number that stands for a key; nil when there is none.
    public subscript(key: UInt64) -> Int? {
        guard let position = position(of: key) else { return nil }
        return entries[position].value
    }

    /// Lets a number, which is not negative, stand for a key, in place of the one that did.
    public mutating func set(_ value: Int, for key: UInt64) {
        precondition(value >= 0, "a negative number")
        if 2 * (count + 1) > entries.count { grow() }
        var position = home(of: key)
        while entries[position].value >= 0 {
            if entries[position].key == key {
                entries[position].value = value
                return
            }
            position = (position + 1) & (entries.count - 1)
        }
        entries[position] = Entry(key: key, value: value)
        count += 1
    }

    /// Forgets a key; returns what stood for it.
    @discardableResult
    public mutating func remove(_ key: UInt64) -> Int? {
        guard var hole = position(of: key) else { return nil }
        let value = entries[hole].value
        let mask = entries.count - 1
        var next = (hole + 1) & mask
        while entries[next].value >= 0 {
            // What would not be found any more from its home on moves into the hole.
            let distance = (next - home(of: entries[next].key)) & mask
            if distance >= (next - hole) & mask {
                entries[hole] = entries[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        entries[hole].value = -1
        count -= 1
        if count == 0, entries.count > Self.keptCapacity { entries = [] }
        return value
    }

    private func position(of key: UInt64) -> Int? {
        if count == 0 { return nil }
        var position = home(of: key)
        // At least half of the places are free: this ends.
        while entries[position].value >= 0 {
            if entries[position].key == key { return position }
            position = (position + 1) & (entries.count - 1)
        }
        return nil
    }

    /// Where a key is when nothing is in its way: the highest bits of its product with 2⁶⁴ divided by the golden ratio.
    private func home(of key: UInt64) -> Int {
        Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> UInt64(64 - entries.count.trailingZeroBitCount))
    }

    private mutating func grow() {
        let old = entries
        let capacity = max(Self.leastCapacity, 2 * old.count)
        entries = Array(repeating: Entry(key: 0, value: -1), count: capacity)
        count = 0
        for entry in old where entry.value >= 0 { set(entry.value, for: entry.key) }
    }
}
