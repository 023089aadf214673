internal import ByteAccess
internal import DNSMessage

/// Values for names and all that is below them. Looking up neither allocates nor depends on how many names there are.
struct NameTable<Value: BitwiseCopyable & Sendable>: Sendable {
    private struct Entry: Sendable {
        var hash: UInt64
        var start: Int
        var count: Int
        var value: Value
    }

    private var octets: [UInt8] = []
    private var entries: [Entry] = []
    /// Open addressing: the entry's index and one, or 0. There are twice as many places as entries at least.
    private var places: [Int32] = []
    /// The most labels that a name in the table has.
    private var maximumLabelCount = 0

    /// True when there are no names.
    var isEmpty: Bool { entries.isEmpty }
    /// How many names there are.
    var count: Int { entries.count }

    /// A table. Of two equal names the later counts.
    init(_ names: some Sequence<(name: DomainName, value: Value)>) {
        for (name, value) in names { set(value, for: name) }
    }

    /// Gives a name a value, in place of the one that it had.
    mutating func set(_ value: Value, for name: DomainName) {
        insert(DomainName(name.view, lowercased: true), value)
    }

    private mutating func insert(_ name: DomainName, _ value: Value) {
        let canonical = CanonicalName(lowercased: name.bytes)
        var hash = Self.rootHash
        for index in 0..<canonical.labelCount {
            hash = Self.hash(hash, canonical.label(canonical.labelCount - 1 - index))
        }
        if let index = entry(hash, name.bytes) {
            entries[index].value = value
            return
        }
        let start = octets.count
        for offset in 0..<name.bytes.byteCount { octets.append(name.bytes.uint8(at: offset)) }
        entries.append(Entry(hash: hash, start: start, count: name.bytes.byteCount, value: value))
        maximumLabelCount = max(maximumLabelCount, canonical.labelCount)
        if 2 * entries.count > places.count {
            places = [Int32](repeating: 0, count: max(8, 4 * entries.count).nextPowerOfTwo)
            for index in entries.indices { place(index) }
        } else {
            place(entries.count - 1)
        }
    }

    private mutating func place(_ index: Int) {
        var position = Int(truncatingIfNeeded: entries[index].hash) & (places.count - 1)
        while places[position] != 0 { position = (position + 1) & (places.count - 1) }
        places[position] = Int32(truncatingIfNeeded: index + 1)
    }

    private func entry(_ hash: UInt64, _ name: RawSpan) -> Int? {
        guard !places.isEmpty else { return nil }
        var position = Int(truncatingIfNeeded: hash) & (places.count - 1)
        while places[position] != 0 {
            let index = Int(places[position]) - 1
            let entry = entries[index]
            if entry.hash == hash,
                octets.span.octets.extracting(entry.start..<entry.start + entry.count).hasSameBytes(as: name)
            {
                return index
            }
            position = (position + 1) & (places.count - 1)
        }
        return nil
    }

    /// Calls `body` with the value and the number of labels of each name in the table that `name` is or is below, the shortest first.
    func forEachMatch(of name: borrowing CanonicalName, _ body: (Value, Int) -> Void) {
        guard !entries.isEmpty else { return }
        var hash = Self.rootHash
        for count in 0...min(name.labelCount, maximumLabelCount) {
            if count > 0 { hash = Self.hash(hash, name.label(name.labelCount - count)) }
            if let index = entry(hash, name.suffix(count)) { body(entries[index].value, count) }
        }
    }

    /// The value of a name itself.
    func exactMatch(of name: borrowing CanonicalName) -> Value? {
        guard !entries.isEmpty, name.labelCount <= maximumLabelCount else { return nil }
        var hash = Self.rootHash
        for count in 0..<name.labelCount { hash = Self.hash(hash, name.label(name.labelCount - 1 - count)) }
        return entry(hash, name.bytes).map { entries[$0].value }
    }

    /// The value of the longest name in the table that `name` is or is below, and how many labels it has.
    func longestMatch(of name: borrowing CanonicalName) -> (value: Value, labelCount: Int)? {
        var match: (Value, Int)?
        forEachMatch(of: name) { match = ($0, $1) }
        return match
    }

    private static var rootHash: UInt64 { 0xCBF2_9CE4_8422_2325 }

    /// FNV-1a over the label's octets and its length, with a last mix: the names in a table are the configuration's, so that nobody
    /// chooses them to collide.
    private static func hash(_ start: UInt64, _ label: RawSpan) -> UInt64 {
        var hash = (start ^ UInt64(label.byteCount)) &* 0x100_0000_01B3
        for offset in label.byteOffsets { hash = (hash ^ UInt64(label.uint8(at: offset))) &* 0x100_0000_01B3 }
        return hash ^ hash >> 29
    }
}

extension Int {
    /// The power of two that is not below this number.
    var nextPowerOfTwo: Int { self <= 1 ? 1 : 1 << (bitWidth - (self - 1).leadingZeroBitCount) }
}
