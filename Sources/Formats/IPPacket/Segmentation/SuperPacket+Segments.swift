import ByteAccess

extension SuperPacket {
    /// Writes the segment at `index` (from zero), a complete packet of ``length(of:)`` bytes with right lengths and checksums, to
    /// the start of `output`. `packet` is what this was parsed from. Traps when the index is out of range or `output` too short.
    public func writeSegment(_ index: Int, of packet: RawSpan, into output: inout MutableRawSpan) {
        precondition(index >= 0 && index < segmentCount, "no such segment")
        switch form {
        case .whole:
            output.copy(packet.extracting(..<ipHeader.totalLength), to: 0)
        case .partialChecksum(let start, let field):
            output.copy(packet.extracting(..<start), to: 0)
            var sum = InternetChecksum()
            sum.add(word: output.copySumming(packet.extracting(start..<ipHeader.totalLength), to: start))
            output.storeBigEndian(sum.nonzeroChecksum, at: field)
        case .tcp:
            writeTCP(index, of: packet, into: &output)
        case .udp(let hasChecksum):
            writeUDP(index, of: packet, hasChecksum: hasChecksum, into: &output)
        }
    }

    private func writeTCP(_ index: Int, of packet: RawSpan, into output: inout MutableRawSpan) {
        var sum = writeHeadersAndPayload(index, of: packet, into: &output)
        let sequence =
            packet.bigEndianUInt32(at: transportOffset + 4)
            &+ UInt32(truncatingIfNeeded: index * segmentSize)
        // Data offset, reserved bits and flags.
        var control = packet.bigEndianUInt16(at: transportOffset + 12)
        if index != segmentCount - 1 {
            control &= ~UInt16(TCPFlags([.finish, .push]).rawValue)
        }
        if index != 0 {
            control &= ~UInt16(TCPFlags.congestionWindowReduced.rawValue)
        }
        sum.add(word: UInt64(sequence.bigEndian))
        sum.add(control)
        output.storeBigEndian(sequence, at: transportOffset + 4)
        output.storeBigEndian(control, at: transportOffset + 12)
        output.storeBigEndian(sum.checksum, at: transportOffset + 16)
    }

    private func writeUDP(_ index: Int, of packet: RawSpan, hasChecksum: Bool, into output: inout MutableRawSpan) {
        var sum = writeHeadersAndPayload(index, of: packet, into: &output)
        let length = UInt16(truncatingIfNeeded: self.length(of: index) - transportOffset)
        sum.add(length)
        output.storeBigEndian(length, at: transportOffset + 4)
        output.storeBigEndian(hasChecksum ? sum.nonzeroChecksum : 0, at: transportOffset + 6)
    }

    /// Copies headers and payload, corrects the IP header, and returns the sum for the transport checksum of the payload, the
    /// pseudo-header and the parts of the transport header that all segments share.
    @inline(__always)
    private func writeHeadersAndPayload(
        _ index: Int, of packet: RawSpan, into output: inout MutableRawSpan
    ) -> InternetChecksum {
        let length = self.length(of: index)
        let payloadStart = headersLength + index * segmentSize
        output.copy(packet.extracting(..<headersLength), to: 0)
        var sum = transportSum
        sum.add(UInt16(truncatingIfNeeded: length - transportOffset))
        sum.add(
            word: output.copySumming(
                packet.extracting(payloadStart..<payloadStart + length - headersLength), to: headersLength))
        switch ipHeader.version {
        case .v4:
            let identification = packet.bigEndianUInt16(at: 4) &+ UInt16(truncatingIfNeeded: index)
            let totalLength = UInt16(truncatingIfNeeded: length)
            var header = networkSum
            header.add(identification)
            header.add(totalLength)
            output.storeBigEndian(totalLength, at: 2)
            output.storeBigEndian(identification, at: 4)
            output.storeBigEndian(header.checksum, at: 10)
        case .v6:
            output.storeBigEndian(UInt16(truncatingIfNeeded: length - 40), at: 4)
        }
        return sum
    }
}
