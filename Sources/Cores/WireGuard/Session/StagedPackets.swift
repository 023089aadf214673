import ByteAccess

/// The packets of one peer that wait for a session: at most 128, the oldest goes when one more comes (Linux).
struct StagedPackets {
    private var packets: [[UInt8]] = []
    /// How many at the front are gone already: taking one does not move the others.
    private var taken = 0
    /// The bytes of the packets that wait.
    private(set) var byteCount = 0

    var count: Int { packets.count - taken }
    var isEmpty: Bool { count == 0 }

    /// Adds a packet of `length` bytes, which `write` fills in. Returns how many older ones were dropped for it.
    mutating func append(length: Int, _ write: (inout MutableRawSpan) -> Void) -> Int {
        var packet = [UInt8](repeating: 0, count: length)
        var span = packet.mutableSpan
        var bytes = span.mutableOctets
        write(&bytes)
        var dropped = 0
        while count >= ProtocolConstants.maximumStagedPackets {
            _ = takeFirst()
            dropped += 1
        }
        packets.append(packet)
        byteCount += length
        return dropped
    }

    /// Takes the oldest packet.
    mutating func takeFirst() -> [UInt8]? {
        guard !isEmpty else { return nil }
        let packet = packets[taken]
        packets[taken] = []
        taken += 1
        byteCount -= packet.count
        if taken == packets.count {
            packets.removeAll()
            taken = 0
        } else if taken >= ProtocolConstants.maximumStagedPackets {
            packets.removeFirst(taken)
            taken = 0
        }
        return packet
    }

    /// Drops all packets and returns how many they were.
    mutating func removeAll() -> Int {
        defer {
            packets = []
            taken = 0
            byteCount = 0
        }
        return count
    }
}
