import ByteAccess

/// Puts a message with its length in two bytes in front into the room that a stream has, in as many steps as that takes.
///
/// When there is room for all of it, length and message are together in one step, so that they go out in one segment (RFC 7766 §8).
public struct FramedMessageWriter: Sendable {
    /// The length of the prefix in bytes.
    @inlinable public static var prefixLength: Int { 2 }

    /// The length of the message in bytes.
    public let messageLength: Int
    /// How many bytes have been written, the prefix counted.
    public private(set) var writtenCount = 0

    /// A writer for a message of this many bytes: 65,535 at most. Traps when there are more.
    public init(messageLength: Int) {
        precondition(0...DNSMessageView.maximumByteCount ~= messageLength, "a message that cannot be framed")
        self.messageLength = messageLength
    }

    /// True when everything has been written.
    public var isFinished: Bool { writtenCount == messageLength + Self.prefixLength }

    /// Writes as much as fits from `offset` of `output` on.
    ///
    /// - Parameter message: The same message each time.
    /// - Returns: The offset behind what was written.
    public mutating func write(_ message: RawSpan, into output: inout MutableRawSpan, at offset: Int = 0) -> Int {
        precondition(message.byteCount == messageLength, "another message")
        var position = offset
        while writtenCount < Self.prefixLength, position < output.byteCount {
            output.store(UInt8(truncatingIfNeeded: messageLength >> (writtenCount == 0 ? 8 : 0)), at: position)
            writtenCount += 1
            position += 1
        }
        guard writtenCount >= Self.prefixLength else { return position }
        let start = writtenCount - Self.prefixLength
        let count = min(messageLength - start, output.byteCount - position)
        output.copy(message.extracting(start..<start + count), to: position)
        writtenCount += count
        return position + count
    }
}
