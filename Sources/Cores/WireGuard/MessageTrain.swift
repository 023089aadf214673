/// Messages that lie one after the other in a buffer, all of one length but for the last, which may be shorter: what one
/// UDP_SEGMENT send carries and one UDP_GRO receive returns. A single message is a train of one.
public struct MessageTrain: Equatable, Sendable {
    /// Where the first message begins, in bytes from the start of the buffer.
    public var offset: Int
    /// How many messages there are.
    public var count: Int
    /// The length in bytes of every message but the last.
    public var stride: Int
    /// The length in bytes of the last message: at most `stride`.
    public var lastLength: Int

    /// A train of `count` messages.
    @inlinable
    public init(offset: Int, count: Int, stride: Int, lastLength: Int) {
        self.offset = offset
        self.count = count
        self.stride = stride
        self.lastLength = lastLength
    }

    /// A train of one message.
    @inlinable
    public init(offset: Int, length: Int) {
        self.init(offset: offset, count: 1, stride: length, lastLength: length)
    }

    /// The bytes that the whole train takes.
    @inlinable
    public var length: Int { count == 0 ? 0 : (count - 1) * stride + lastLength }

    /// Where message `index` lies in the buffer.
    @inlinable
    public func range(of index: Int) -> Range<Int> {
        let start = offset + index * stride
        return start..<start + (index == count - 1 ? lastLength : stride)
    }
}
