import ByteAccess

/// The packets of one peer that wait for a session: at most 128, the oldest goes when one more comes (Linux), and the new one takes
/// over its memory.
struct StagedPackets {
    /// A ring; it grows up to the limit.
    private var slots: [[UInt8]] = []
    /// Where the oldest packet is.
    private var first = 0
    /// How many packets wait.
    private(set) var count = 0
    /// The bytes of the packets that wait.
    private(set) var byteCount = 0

    var isEmpty: Bool { count == 0 }

    /// Adds a packet of `length` bytes, which `write` fills in. Returns how many older ones were dropped for it.
    mutating func append(length: Int, _ write: (inout MutableRawSpan) -> Void) -> Int {
        var dropped = 0
        if count == ProtocolConstants.maximumStagedPackets {
            byteCount -= slots[first].count
            first = (first + 1) % slots.count
            count -= 1
            dropped = 1
        } else if count == slots.count {
            unroll()
            slots.append([])
        }
        let place = (first + count) % slots.count
        slots[place].removeAll(keepingCapacity: true)
        slots[place].append(contentsOf: repeatElement(0, count: length))
        var span = slots[place].mutableSpan
        var bytes = span.mutableOctets
        write(&bytes)
        count += 1
        byteCount += length
        return dropped
    }

    /// Takes the oldest packet.
    mutating func takeFirst() -> [UInt8]? {
        guard count > 0 else { return nil }
        var packet: [UInt8] = []
        swap(&packet, &slots[first])
        first = (first + 1) % slots.count
        count -= 1
        byteCount -= packet.count
        if count == 0 { _ = removeAll() }
        return packet
    }

    /// Drops all packets and returns how many they were.
    mutating func removeAll() -> Int {
        defer { self = StagedPackets() }
        return count
    }

    /// Puts the oldest packet to the front, so that the ring can grow at its end.
    private mutating func unroll() {
        guard first > 0 else { return }
        slots = Array(slots[first...] + slots[..<first])
        first = 0
    }
}
