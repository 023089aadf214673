import ByteAccess

/// Why a stream cannot be cut into messages. What is behind the defect cannot be told apart any more: the connection is to be closed.
public enum FramingError: Error, Hashable, Sendable {
    /// A length below the twelve bytes of a header.
    case messageTooShort(length: Int)
    /// A length above the limit.
    case messageTooLong(length: Int)
}

/// Cuts a TCP or TLS stream into messages, each with its length in two bytes in front (RFC 1035 §4.2.2, RFC 7766 §8).
///
/// The stream comes in pieces of any size: single bytes, several messages in one, halves of two. A message that is whole in one piece
/// is not copied; of others the caller lends a buffer, whose contents it keeps between calls.
///
///     ┌──▶ length ── two bytes ──▶ body ── last byte ──┐
///     │                                                │
///     └────────────────────────────────────────────────┘
public struct FramedMessageReader: Sendable {
    /// What was found in a piece of the stream.
    public enum Event: Hashable, Sendable {
        /// A whole message is in this range of the piece.
        case messageInInput(Range<Int>)
        /// A whole message is at the start of the buffer, with this many bytes.
        case messageInBuffer(Int)
        /// The buffer has to have this many bytes for the message that has begun. Bring the bytes that it holds, ``bufferedCount``, into a
        /// larger one, and call again with the same input.
        case needsBuffer(Int)
        /// The piece is used up.
        case needsInput
    }

    /// The longest message that is taken, in bytes.
    public let limit: Int
    /// The first byte of a length whose second has not come.
    private var lengthPrefix: UInt8?
    /// The length of the message that has begun.
    private var length: Int?
    /// How many bytes of the message are in the buffer.
    public private(set) var bufferedCount = 0

    /// A reader at the start of a stream. Every length up to `limit` bytes is taken; 65,535 is the most that can be said.
    public init(limit: Int = DNSMessageView.maximumByteCount) {
        self.limit = limit
    }

    /// True when a message has begun and its end has not come: at the end of a stream something is missing then.
    public var isWithinMessage: Bool { lengthPrefix != nil || length != nil }

    /// Goes on from `offset` in a piece of the stream, to the next message or to the end of the piece.
    ///
    /// - Parameters:
    ///   - offset: Where to go on; afterwards, how far the piece is used up. Begin with 0, and call until ``Event/needsInput``.
    ///   - buffer: What a message that came in several pieces is put together in.
    public mutating func next(
        _ input: RawSpan, at offset: inout Int, buffer: inout MutableRawSpan
    ) throws(FramingError) -> Event {
        guard let length = try readLength(input, at: &offset) else { return .needsInput }
        let available = input.byteCount - offset
        if bufferedCount == 0, available >= length {
            let range = offset..<offset + length
            offset = range.upperBound
            self.length = nil
            return .messageInInput(range)
        }
        if available == 0 { return .needsInput }
        guard buffer.byteCount >= length else { return .needsBuffer(length) }
        let taken = min(available, length - bufferedCount)
        buffer.copy(input.extracting(offset..<offset + taken), to: bufferedCount)
        bufferedCount += taken
        offset += taken
        guard bufferedCount == length else { return .needsInput }
        self.length = nil
        bufferedCount = 0
        return .messageInBuffer(length)
    }

    /// The length of the message that has begun, or of the one that begins here; nil when it is not whole yet.
    private mutating func readLength(_ input: RawSpan, at offset: inout Int) throws(FramingError) -> Int? {
        if let length { return length }
        guard offset < input.byteCount else { return nil }
        let first: UInt8
        if let lengthPrefix {
            first = lengthPrefix
        } else {
            first = input.uint8(at: offset)
            offset += 1
            guard offset < input.byteCount else {
                lengthPrefix = first
                return nil
            }
        }
        let length = Int(first) << 8 | Int(input.uint8(at: offset))
        offset += 1
        lengthPrefix = nil
        guard length >= DNSHeader.byteCount else { throw .messageTooShort(length: length) }
        guard length <= limit else { throw .messageTooLong(length: length) }
        self.length = length
        return length
    }
}
