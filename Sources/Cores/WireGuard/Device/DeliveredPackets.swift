/// The inner packets that a received train held: where they lie in the buffer that was passed in, in the order they came.
public struct DeliveredPackets: Sendable {
    /// The most packets it holds: as many as a train has messages.
    public static let capacity = 128

    private var ranges = InlineArray<128, Range<Int>>(repeating: 0..<0)
    /// How many packets there are.
    public private(set) var count = 0

    /// No packets.
    public init() {}

    /// Where packet `index` lies.
    public subscript(index: Int) -> Range<Int> {
        precondition(index < count, "no such packet")
        // By way of the span: to read an element itself copies all of them.
        return ranges.span[index]
    }

    /// Forgets all packets.
    public mutating func removeAll() {
        count = 0
    }

    /// Adds a packet.
    mutating func append(_ range: Range<Int>) {
        ranges[count] = range
        count += 1
    }
}
