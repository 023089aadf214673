internal import ByteAccess
internal import IPPacket

extension TUNDevice {
    /// Writes the packets that the item at `index` of a joiner was joined from, one by one: for a kernel that refused them
    /// together. Slow, and meant for the first time only: later packets should not be joined. Returns how many found no room.
    func writeSeparately(
        _ index: Int, of joiner: borrowing PacketJoiner, in buffer: RawSpan
    ) throws(TUNError) -> Int {
        let (header, pieces) = joiner[index]
        var whole = PacketBuffer(capacity: PacketJoiner.maximumLength)
        var length = 0
        do {
            var bytes = whole.bytes()
            for number in pieces {
                let piece = joiner.piece(number)
                bytes.copy(buffer.extracting(piece), to: length)
                length += piece.count
            }
        }
        let bytes = whole.bytes()
        let packet = bytes.bytes.extracting(first: length)
        guard let superPacket = try? SuperPacket(parsing: packet, header: header) else { throw .packetRefused }
        var segment = PacketBuffer(capacity: superPacket.segmentLength)
        var dropped = 0
        for index in 0..<superPacket.segmentCount {
            var bytes = segment.bytes()
            superPacket.writeSegment(index, of: packet, into: &bytes)
            if try !write(bytes.bytes.extracting(first: superPacket.length(of: index))) { dropped += 1 }
        }
        return dropped
    }
}
