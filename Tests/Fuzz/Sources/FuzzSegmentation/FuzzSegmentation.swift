import FuzzSupport
import IPPacket

/// The input is a virtio header with its packet, and also a train of packets as ``Train`` spells it.
@c(LLVMFuzzerTestOneInput)
public func fuzzSegmentation(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let input = [UInt8](copying: bytes)
        checkSplitting(input)
        checkJoining(Train(spelledBy: input).packets)
    }
}

/// The segments of a super-packet are packets, lose no byte of it, and are the same after joining and splitting again.
private func checkSplitting(_ input: [UInt8]) {
    guard input.count >= VirtioNetworkHeader.byteCount else {
        require(input.read { try? VirtioNetworkHeader(parsing: $0) } == nil, "a short header is refused")
        return
    }
    guard let header = input.read({ try? VirtioNetworkHeader(parsing: $0) }) else { return }
    var written = [UInt8](repeating: 0, count: VirtioNetworkHeader.byteCount)
    written.edit { header.store(into: &$0) }
    require(written.read { try? VirtioNetworkHeader(parsing: $0) } == header, "a written header is read back")

    let packet = Array(input[VirtioNetworkHeader.byteCount...])
    guard let segments = split(packet, header) else { return }
    guard let ipHeader = packet.read({ try? IPHeader(parsing: $0) }) else { fatalError("segments of no packet") }
    if header.segmentation == .none {
        require(segments.count == 1 && segments[0].count == ipHeader.totalLength, "a packet stays one")
        checkUnsegmented(packet, header, segments[0])
        return
    }
    guard let layout = packet.read({ try? PacketLayout(parsing: $0) }) else { fatalError("segments of no layout") }
    let headersLength = layout.payload.lowerBound
    var payload: [UInt8] = []
    for (index, segment) in segments.enumerated() {
        guard let own = segment.read({ try? PacketLayout(parsing: $0) }) else { fatalError("a segment is no packet") }
        require(own.header.totalLength == segment.count, "a segment is as long as it says")
        require(own.fiveTuple == layout.fiveTuple, "a segment is of the same flow")
        require(own.payload.lowerBound == headersLength, "a segment has the same headers")
        let isLast = index == segments.count - 1
        require(own.payload.count == Int(header.segmentSize) || isLast, "a segment has the segment size")
        require(own.payload.count <= Int(header.segmentSize), "the last segment is not longer")
        let checksum = segment.read { own.transportChecksum(of: $0) }
        require(checksum == .valid || checksum == .absent || own.hasSegmentsLeft, "a segment's checksum")
        let isValid = segment.read { (try? IPv4PacketView(checking: $0))?.hasValidHeaderChecksum }
        require(isValid ?? true, "a segment's header checksum")
        payload += segment[own.payload]
    }
    require(payload == Array(packet[layout.payload]), "no byte is lost")
    if segments.count <= PacketJoiner.capacity { checkJoining(segments) }
}

/// A completed checksum is right and nothing else changes.
private func checkUnsegmented(_ packet: [UInt8], _ header: VirtioNetworkHeader, _ segment: [UInt8]) {
    var expected = Array(packet[..<segment.count])
    if header.flags.contains(.needsChecksum) {
        let (start, offset) = (Int(header.checksumStart), Int(header.checksumOffset))
        let isCompleted = expected.edit {
            (try? InternetChecksum.complete(in: &$0, start: start, offset: offset)) != nil
        }
        require(isCompleted, "a checksum within the packet")
    }
    require(segment == expected, "a packet alone is unchanged but for its checksum")
}

/// What joining makes of packets stands for exactly these packets.
private func checkJoining(_ train: [[UInt8]]) {
    // Packets of their own memory, one after the other, with a byte between that must not change.
    var buffer: [UInt8] = []
    var ranges: [Range<Int>] = []
    for packet in train {
        ranges.append(buffer.count..<buffer.count + packet.count)
        buffer += packet + [0xA5]
    }
    var joiner = PacketJoiner()
    buffer.edit { buffer in
        for range in ranges { joiner.append(range, in: &buffer) }
        joiner.finish(in: &buffer)
    }
    require(ranges.allSatisfy { buffer[$0.upperBound] == 0xA5 }, "a byte between packets changed")
    var next = 0
    for index in 0..<joiner.count {
        let (header, pieces) = joiner[index]
        require(pieces.lowerBound == next && !pieces.isEmpty, "pieces in order")
        let originals = train[next..<pieces.upperBound]
        next = pieces.upperBound
        require(joiner.piece(pieces.lowerBound) == ranges[pieces.lowerBound], "the first piece is a packet")
        let packet = pieces.flatMap { buffer[joiner.piece($0)] }
        if pieces.count == 1 {
            require(packet == originals.first, "a packet alone is unchanged")
            require(header == VirtioNetworkHeader(flags: header.flags.intersection(.dataValid)), "its header says so")
            if header.flags == .dataValid { require(isValid(packet), "a packet that is called valid") }
            continue
        }
        require(originals.allSatisfy(isValid), "what is joined is valid")
        require(packet.count <= PacketJoiner.maximumLength, "the length of a super-packet")
        guard let segments = split(packet, header) else { fatalError("a super-packet cannot be split") }
        require(segments.count == originals.count, "as many as there were")
        for (segment, original) in zip(segments, originals) where segment != original {
            // With DF set, IPv4's identification means nothing, and may be another.
            require(original[0] == 0x45 && original[6] == 0x40, "splitting takes joining back")
            var renumbered = original
            renumbered.replaceSubrange(4..<6, with: segment[4..<6])
            renumbered.replaceSubrange(10..<12, with: segment[10..<12])
            require(renumbered == segment, "splitting takes joining back, but for the identification")
        }
    }
    require(next == train.count, "every packet is there")
}

private func isValid(_ packet: [UInt8]) -> Bool {
    packet.read { packet in
        guard let layout = try? PacketLayout(parsing: packet) else { return false }
        let isHeaderValid = (try? IPv4PacketView(checking: packet))?.hasValidHeaderChecksum ?? true
        return isHeaderValid && layout.transportChecksum(of: packet) == .valid
    }
}

/// All segments; nil when they are refused. The output has no byte to spare, so that the address sanitizer sees any step beyond.
private func split(_ packet: [UInt8], _ header: VirtioNetworkHeader) -> [[UInt8]]? {
    guard let superPacket = packet.read({ try? SuperPacket(parsing: $0, header: header) }) else { return nil }
    require(superPacket.lastSegmentLength <= superPacket.segmentLength, "the last segment is not longer")
    return (0..<superPacket.segmentCount).map { index in
        var output = [UInt8](repeating: 0, count: superPacket.length(of: index))
        output.edit { output in packet.read { superPacket.writeSegment(index, of: $0, into: &output) } }
        return output
    }
}
