internal import ByteAccess
internal import DNSMessage

/// Names, to ask whether a name is one of them. Lists of what is to be blocked have hundreds of thousands: a name takes its own length and
/// six bytes. Asking neither allocates nor depends on how many there are.
struct NameSet: Sendable {
    /// The names, one behind the other, in lower case.
    private var octets: [UInt8] = []
    /// Open addressing: where names begin, and one more; 0 where there is none. There are half as many places again as names.
    private var places: [UInt32] = []
    /// How many names there are.
    private(set) var count = 0

    /// No names.
    init() {}

    /// True when there are none.
    var isEmpty: Bool { count == 0 }
    /// How many bytes of memory the names take.
    var byteCount: Int { octets.count + places.count * MemoryLayout<UInt32>.stride }

    /// Has room for names of so many bytes in all. What is not used of it takes addresses, and no memory.
    mutating func reserve(byteCount: Int) { octets.reserveCapacity(octets.count + byteCount) }

    /// Adds a name, which is one of them after `index()`.
    mutating func append(_ name: DomainName) {
        let lowercased = DomainName(name.view, lowercased: true)
        let bytes = lowercased.bytes
        guard octets.count + bytes.byteCount < Int(UInt32.max) else { return }
        for offset in bytes.byteOffsets { octets.append(bytes.uint8(at: offset)) }
    }

    /// Finds places for all names, and forgets those that are there twice.
    mutating func index() {
        var nameCount = 0
        var offset = 0
        while offset < octets.count {
            offset = end(ofNameAt: offset)
            nameCount += 1
        }
        places = [UInt32](repeating: 0, count: nameCount == 0 ? 0 : nameCount + nameCount / 2 + 1)
        count = 0
        // Names move towards the front, over what is forgotten.
        var (source, target) = (0, 0)
        while source < octets.count {
            let length = end(ofNameAt: source) - source
            let position = place(of: octets.span.octets.extracting(source..<source + length))
            if places[position] == 0 {
                places[position] = UInt32(truncatingIfNeeded: target + 1)
                count += 1
                if source != target { for step in 0..<length { octets[target + step] = octets[source + step] } }
                target += length
            }
            source += length
        }
        octets.removeLast(octets.count - target)
    }

    /// True when a name is one of them.
    func contains(_ name: borrowing CanonicalName) -> Bool {
        guard count > 0 else { return false }
        return places[place(of: name.bytes)] != 0
    }

    /// The place of a name, or the empty one where it would be.
    private func place(of name: RawSpan) -> Int {
        let octets = octets.span.octets
        var position = Int(Self.hash(name).multipliedFullWidth(by: UInt64(places.count)).high)
        while places[position] != 0 {
            let start = Int(places[position]) - 1
            // What is equal up to its end is the name: no name is the begin of another one.
            if start + name.byteCount <= octets.byteCount,
                octets.extracting(start..<start + name.byteCount).hasSameBytes(as: name)
            {
                return position
            }
            position = position + 1 == places.count ? 0 : position + 1
        }
        return position
    }

    private func end(ofNameAt start: Int) -> Int {
        var offset = start
        while octets[offset] != 0 { offset += 1 + Int(octets[offset]) }
        return offset + 1
    }

    /// FNV-1a with a last mix (MurmurHash3's): it is the upper bits that count.
    private static func hash(_ name: RawSpan) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for offset in name.byteOffsets { hash = (hash ^ UInt64(name.uint8(at: offset))) &* 0x100_0000_01B3 }
        hash = (hash ^ hash >> 33) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ hash >> 33) &* 0xC4CE_B9FE_1A85_EC53
        return hash ^ hash >> 33
    }
}
