import FuzzSupport
import IPPacket

/// The input is a packet with whatever is behind it; and the text of an address; and bytes to sum.
@c(LLVMFuzzerTestOneInput)
public func fuzzIPPacket(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        checkViews(bytes)
        checkLayout(bytes)
        checkSums(bytes)
        checkCongestionMarking(bytes)
        checkICMP(bytes)
        if bytes.byteCount < 64 { checkText(bytes) }
    }
}

/// Reads everything that views show, and checks that their parts make up the whole.
private func checkViews(_ bytes: RawSpan) {
    if let view = try? IPv4PacketView(checking: bytes) {
        use(view.identification, view.dontFragment, view.fragment.offset, view.headerChecksum)
        require(20 + view.options.byteCount + view.payload.byteCount == view.header.totalLength, "parts of IPv4")
        checkTransportViews(view.payload)
    }
    if let view = try? IPv6PacketView(checking: bytes) {
        use(view.flowLabel, view.hasSegmentsLeft, view.fragmentIdentification, view.upperLayerProtocol)
        require(
            40 + view.extensionHeaders.byteCount + view.payload.byteCount == view.header.totalLength, "parts of IPv6")
        checkTransportViews(view.payload)
    }
    checkTransportViews(bytes)
}

private func checkTransportViews(_ bytes: RawSpan) {
    if let view = try? TCPSegmentView(checking: bytes) {
        use(view.sourcePort, view.destinationPort, view.sequenceNumber, view.acknowledgmentNumber)
        use(view.flags, view.window, view.checksum, view.urgentPointer)
        use(view.maximumSegmentSize, 0, 0, 0)
        require(20 + view.options.byteCount + view.payload.byteCount == bytes.byteCount, "parts of TCP")
    }
    if let view = try? UDPDatagramView(checking: bytes) {
        use(view.sourcePort, view.destinationPort, view.checksum, 0)
        require(8 + view.payload.byteCount <= bytes.byteCount, "parts of UDP")
    }
    if let view = try? ICMPv4MessageView(checking: bytes) {
        use(view.type, view.code, view.checksum, view.isError)
        use(view.echoIdentifier, view.echoSequenceNumber, 0, 0)
        require(8 + view.body.byteCount == bytes.byteCount, "parts of ICMP")
    }
    if let view = try? ICMPv6MessageView(checking: bytes) {
        use(view.type, view.code, view.checksum, view.isError)
        use(view.echoIdentifier, view.echoSequenceNumber, 0, 0)
        require(4 + view.body.byteCount == bytes.byteCount, "parts of ICMPv6")
    }
}

/// A layout agrees with the header, lies within the packet, does not see what is behind it, and its checksums hold.
private func checkLayout(_ bytes: RawSpan) {
    guard let layout = try? PacketLayout(parsing: bytes) else { return }
    let header = try? IPHeader(parsing: bytes)
    require(layout.header == header, "the layout's header")
    require(layout.header.totalLength <= bytes.byteCount, "the packet is within the bytes")
    require(layout.transportOffset >= layout.header.headerLength, "the transport header is behind the IP header")
    require(layout.payload.lowerBound >= layout.transportOffset, "the payload is behind the transport header")
    require(layout.payload.upperBound <= layout.header.totalLength, "the payload is within the packet")
    require((layout.fiveTuple != nil) == layout.fragment.holdsTransportHeader, "ports are in first fragments")
    require(layout.fiveTuple?.reversed.reversed == layout.fiveTuple, "reversing twice")

    var packet = [UInt8](copying: bytes.extracting(..<layout.header.totalLength))
    let trimmed = packet.read { try? PacketLayout(parsing: $0) }
    require(trimmed == layout, "padding does not count")
    let checksum = layout.transportChecksum(of: bytes)
    let isWritten = packet.edit { layout.writeTransportChecksum(in: &$0) }
    require(isWritten == (checksum != .notApplicable), "a checksum is written where one can be checked")
    if isWritten {
        require(packet.read { layout.transportChecksum(of: $0) } == .valid, "a written checksum is valid")
    }
}

/// The fast sum, its update and its completion, against the definition.
private func checkSums(_ bytes: RawSpan) {
    let array = [UInt8](copying: bytes)
    for start in [0, 1, 7] where start <= array.count {
        var sum = InternetChecksum()
        sum.add(bytes.extracting(start...))
        require(sum.folded == definedSum(array[start...]), "the sum is the defined one")
    }
    guard array.count >= 4 else { return }
    // A virtio header could name any start and offset.
    var copy = array
    let (start, offset) = (Int(array[0]), Int(array[1]))
    let isCompleted = copy.edit { (try? InternetChecksum.complete(in: &$0, start: start, offset: offset)) != nil }
    require(isCompleted == (start + offset + 2 <= array.count), "completion is refused exactly outside the packet")
    if isCompleted {
        let complement = ~definedSum(array[start...])
        let written = UInt16(copy[start + offset]) << 8 | UInt16(copy[start + offset + 1])
        require(written == (complement == 0 ? 0xFFFF : complement), "the completed checksum is the defined one")
    }
}

/// RFC 1071, a byte at a time.
private func definedSum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
    var sum = 0
    for index in bytes.indices {
        sum += (index - bytes.startIndex) % 2 == 0 ? Int(bytes[index]) * 256 : Int(bytes[index])
        if sum > 0xFFFF { sum -= 0xFFFF }
    }
    return UInt16(sum)
}

/// A mark changes the two bits, keeps a header checksum as right or wrong as it was, and can be made once.
private func checkCongestionMarking(_ bytes: RawSpan) {
    var packet = [UInt8](copying: bytes)
    let before = packet.read { try? IPHeader(parsing: $0) }
    let wasValid = hasValidHeaderChecksum(packet)
    let mark = packet.edit { ExplicitCongestionNotification.markCongestionExperienced(in: &$0) }
    let after = packet.read { try? IPHeader(parsing: $0) }
    require(hasValidHeaderChecksum(packet) == wasValid, "a mark keeps the header checksum")
    guard let before, let after else {
        require(before == nil && after == nil, "a mark keeps a header")
        return
    }
    require(mark != .notIP, "a header that can be read can be marked")
    require((mark == .marked) == before.ecn.isECNCapableTransport, "what is ECN-capable is marked")
    require(after.trafficClass | 3 == before.trafficClass | 3, "a mark keeps the DSCP")
    require(after.ecn == (mark == .marked ? .ce : before.ecn), "a mark is CE")
    let again = packet.edit { ExplicitCongestionNotification.markCongestionExperienced(in: &$0) }
    require(again != .marked, "a mark is made once")
}

private func hasValidHeaderChecksum(_ packet: [UInt8]) -> Bool? {
    packet.read { (try? IPv4PacketView(checking: $0))?.hasValidHeaderChecksum }
}

/// An answer is a packet from the destination to the source, with right checksums, that quotes the packet and is not answered.
private func checkICMP(_ bytes: RawSpan) {
    let reasons: [ICMPDestinationUnreachable.Reason] = [
        .noRoute, .host, .port, .administrativelyProhibited, .packetTooBig(mtu: 1280),
    ]
    let packet = [UInt8](copying: bytes)
    // The size of the output and the reason come from bytes that little else depends on.
    let reason = reasons[bytes.byteCount % reasons.count]
    let size = packet.count > 5 && packet[4] & 0x80 != 0 ? Int(packet[5]) : 1280
    var output = [UInt8](repeating: 0, count: size)
    let length = output.edit { output in
        packet.read { ICMPDestinationUnreachable.write(for: $0, reason: reason, into: &output) }
    }
    guard let length else {
        require(output.allSatisfy { $0 == 0 }, "a refusal writes nothing")
        return
    }
    let answer = Array(output[..<length])
    guard let layout = answer.read({ try? PacketLayout(parsing: $0) }), let header = try? IPHeader(parsing: bytes)
    else {
        fatalError("an answer to what is no packet, or that is none")
    }
    require(length == layout.header.totalLength, "the answer's length")
    require(length <= (header.version == .v4 ? 576 : 1280), "the answer is not too long")
    require(layout.header.source == header.destination, "the answer comes from the destination")
    require(layout.header.destination == header.source, "the answer goes to the source")
    require(answer.read { layout.transportChecksum(of: $0) } == .valid, "the answer's checksum")
    require(hasValidHeaderChecksum(answer) ?? true, "the answer's header checksum")
    let quote = answer[(layout.transportOffset + 8)...]
    require(quote.elementsEqual(packet[..<quote.count]), "the answer quotes the packet")
    require(quote.count <= header.totalLength, "the answer does not quote what is behind the packet")
    var again = [UInt8](repeating: 0, count: 1280)
    let answered = again.edit { again in
        answer.read { ICMPDestinationUnreachable.write(for: $0, reason: reason, into: &again) }
    }
    require(answered == nil, "an answer is not answered")
}

/// Does something with values that the optimizer cannot leave out.
@inline(never)
private func use<A, B, C, D>(_ a: A, _ b: B, _ c: C, _ d: D) {}
