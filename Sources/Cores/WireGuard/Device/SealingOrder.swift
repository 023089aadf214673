import ByteAccess
public import IPPacket

/// A packet's leave to go: the session and the counters that it is sealed with, and the way it takes. A device gives it out;
/// sealing then needs the device no more, so that several threads can seal while one at a time is with the device.
///
/// It holds the session's keys: to be used at once and dropped.
public struct SealingOrder: Sendable {
    /// Where the sealed train goes.
    public let transmission: Transmission
    /// How the packet is cut into messages: as it came, or finer where the way is narrow.
    public let superPacket: SuperPacket
    let keys: SealingKeys

    /// Splits, pads and seals a packet into a train of messages at the start of `output`, in one pass: as many of its segments
    /// as `output` has room for.
    ///
    /// - Parameters:
    ///   - start: The first segment to seal; those before it were sealed by earlier calls.
    ///   - packet: The packet that the order was given for.
    /// - Returns: The train, with at least one message if `output` has room for one, and the segment to go on with; nil
    ///   when none is left.
    public func seal(
        _ packet: RawSpan, from start: Int = 0, into output: inout MutableRawSpan,
        using cryptography: some Cryptography
    ) -> (train: MessageTrain, next: Int?) {
        let stride = keys.messageLength(superPacket.segmentLength)
        let room = output.byteCount / stride
        let end = min(superPacket.segmentCount, start + room)
        guard start < end else { return (MessageTrain(offset: 0, count: 0, stride: stride, lastLength: 0), start) }
        for index in start..<end {
            let length = superPacket.length(of: index)
            let offset = (index - start) * stride
            keys.writeHeader(of: index, at: offset, of: &output)
            let content = offset + DataLayout.headerLength
            var segment = output.slice(content..<content + length)
            superPacket.writeSegment(index, of: packet, into: &segment)
            output.zero(from: content + length, count: PaddedLength.of(length, mtu: keys.mtu) - length)
        }
        let train = MessageTrain(
            offset: 0, count: end - start, stride: stride,
            lastLength: keys.messageLength(superPacket.length(of: end - 1)))
        keys.session.seal(train, in: &output, using: cryptography)
        return (train, end < superPacket.segmentCount ? end : nil)
    }
}

/// What messages are sealed with: a session, the counters set aside for them, and the MTU that padding keeps to.
struct SealingKeys: Sendable {
    let session: Keypair
    let firstCounter: UInt64
    let mtu: Int

    /// The length in bytes of the message that a packet of `length` bytes is sealed into.
    func messageLength(_ length: Int) -> Int {
        DataLayout.headerLength + PaddedLength.of(length, mtu: mtu) + DataLayout.tagLength
    }

    /// Seals one finished packet, or nothing for a keepalive, as a message at the start of `output`. Returns its length.
    func sealSingle(_ packet: RawSpan, into output: inout MutableRawSpan, using cryptography: some Cryptography) -> Int
    {
        let length = messageLength(packet.byteCount)
        writeHeader(of: 0, at: 0, of: &output)
        output.copy(packet, to: DataLayout.headerLength)
        let end = DataLayout.headerLength + packet.byteCount
        output.zero(from: end, count: length - DataLayout.tagLength - end)
        session.seal(MessageTrain(offset: 0, length: length), in: &output, using: cryptography)
        return length
    }

    /// Writes the header of a message, which is told by its number among those that counters were set aside for.
    func writeHeader(of index: Int, at offset: Int, of output: inout MutableRawSpan) {
        output.storeLittleEndian(MessageType.data.rawValue, at: offset)
        output.storeLittleEndian(session.remoteIndex, at: offset + DataLayout.receiver)
        output.storeLittleEndian(firstCounter + UInt64(index), at: offset + DataLayout.counter)
    }
}

/// How plaintexts are padded.
enum PaddedLength {
    /// The length that a packet is padded to: a multiple of 16, but no more than the MTU, so that padding never makes a
    /// datagram that would not fit (Linux). What is longer than the MTU already is padded by its last part.
    static func of(_ length: Int, mtu: Int) -> Int {
        guard mtu > 0 else { return length.roundedUp(toMultipleOf: ProtocolConstants.paddingMultiple) }
        let last = length > mtu ? length % mtu : length
        return length - last + min(mtu, last.roundedUp(toMultipleOf: ProtocolConstants.paddingMultiple))
    }
}

extension Int {
    /// The smallest multiple of `divisor`, a power of two, that is not below this number.
    fileprivate func roundedUp(toMultipleOf divisor: Int) -> Int {
        (self + divisor - 1) & ~(divisor - 1)
    }
}
