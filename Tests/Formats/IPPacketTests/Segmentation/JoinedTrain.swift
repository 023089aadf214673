import ByteAccess
import IPPacket
import TestSupport

/// What a joiner made of a train of packets: the bytes that would be written to a TUN device.
struct JoinedTrain {
    var headers: [VirtioNetworkHeader] = []
    var packets: [[UInt8]] = []
    /// Of how many pieces each packet is: how many packets were joined.
    var pieceCounts: [Int] = []

    /// Joins `train`, whose packets lie in one buffer with bytes between them that must not change.
    init(
        joining train: [[UInt8]], joinsTCP: Bool = true, joinsUDP: Bool = true,
        maximumSegments: Int = PacketJoiner.capacity
    ) {
        var joiner = PacketJoiner(joinsTCP: joinsTCP, joinsUDP: joinsUDP, maximumSegments: maximumSegments)
        self.init(joining: train, with: &joiner)
    }

    init(joining train: [[UInt8]], with joiner: inout PacketJoiner) {
        let gap = 17
        var buffer: [UInt8] = []
        var ranges: [Range<Int>] = []
        for packet in train {
            buffer += [UInt8](repeating: 0xA5, count: gap)
            ranges.append(buffer.count..<buffer.count + packet.count)
            buffer += packet
        }
        joiner.removeAll()
        buffer.edit { buffer in
            for range in ranges { joiner.append(range, in: &buffer) }
            joiner.finish(in: &buffer)
        }
        for range in ranges {
            precondition(buffer[range.lowerBound - gap..<range.lowerBound].allSatisfy { $0 == 0xA5 }, "a gap changed")
        }
        var nextPiece = 0
        for index in 0..<joiner.count {
            let (header, pieces) = joiner[index]
            precondition(pieces.lowerBound == nextPiece, "a piece is missing")
            nextPiece = pieces.upperBound
            headers.append(header)
            pieceCounts.append(pieces.count)
            packets.append(pieces.flatMap { buffer[joiner.piece($0)] })
        }
        precondition(nextPiece == train.count, "a packet is missing")
    }

    /// The packets of the train again.
    func splitAgain() throws -> [[UInt8]] {
        try zip(packets, headers).flatMap { packet, header in
            // What stays alone may be no packet at all.
            header.segmentation == .none ? [packet] : try split(packet, header)
        }
    }
}

/// Joining as its rules say it, on packets as tables of fields: how many of the train's packets go into each that is written.
func referenceJoin(_ train: [ModelPacket], maximumSegments: Int = PacketJoiner.capacity) -> [Int] {
    var groups: [[ModelPacket]] = []
    var isOpen = false
    for packet in train {
        if isOpen, let group = groups.last, canJoin(packet, group, maximumSegments) {
            groups[groups.count - 1].append(packet)
            isOpen = packet.payload.count == group[0].payload.count && !isLast(packet)
        } else {
            groups.append([packet])
            isOpen = !isLast(packet)
        }
    }
    return groups.map(\.count)
}

private func isLast(_ packet: ModelPacket) -> Bool {
    packet.isTCP && packet.flags & 0x09 != 0
}

private func canJoin(_ packet: ModelPacket, _ group: [ModelPacket], _ maximumSegments: Int) -> Bool {
    let first = group[0]
    let length = group.reduce(first.headersLength) { $0 + $1.payload.count } + packet.payload.count
    guard isJoinable(first), isJoinable(packet), length <= 65_535, group.count < maximumSegments else { return false }
    guard packet.isTCP || group.count < 64 else { return false }
    guard packet.payload.count <= first.payload.count else { return false }
    // What the next packet must be, but for its payload and whether it is the last.
    var expected = first
    expected.payload = packet.payload
    expected.flags |= packet.flags & 0x09
    expected.sequence &+= UInt32(group.reduce(0) { $0 + $1.payload.count })
    let isAtomic = !first.isIPv6 && first.fragmentField & 0x4000 != 0
    let isFixed = isAtomic && group.dropFirst().first?.identification == first.identification
    if isAtomic, packet.identification == first.identification, group.count == 1 || isFixed {
        return packet == expected
    }
    expected.identification &+= UInt16(group.count)
    return packet == expected && !isFixed
}

private func isJoinable(_ packet: ModelPacket) -> Bool {
    let hasPlainHeader =
        packet.isIPv6
        ? packet.extensionHeaders.isEmpty : packet.ipOptions.isEmpty && packet.fragmentField & ~0x4000 == 0
    return hasPlainHeader && packet.isFlawless && packet.padding == 0 && !packet.payload.isEmpty
        && (!packet.isTCP || packet.flags & ~0x49 == 0x10)
}
