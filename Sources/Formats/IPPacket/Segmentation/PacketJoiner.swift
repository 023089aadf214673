internal import ByteAccess

/// Joins the packets of one received train into super-packets that a TUN device takes with one write each, without copying
/// payload: what it yields are ranges of the caller's buffer, to be written behind a virtio header.
///
///     append ── follows the open group? ── yes ─→ one more piece; a shorter, PSH or FIN packet completes the group
///                        │ no
///                        ▼
///               complete the group ─→ can the packet begin one? ── yes ─→ the open group
///                                                  │ no
///                                                  ▼
///                                              an item alone
///
/// Only packets that come one after the other are joined, so that order never changes, and only those that splitting gives back
/// as they were. The rules are those of Linux's own GRO:
/// - the same addresses, ports, protocol, traffic class, hop limit, DF bit and flow label; no IPv4 options or IPv6 extension
///   headers, no fragments, no padding;
/// - IPv4 identifications that count up, or with DF set stay the same (then they mean nothing, RFC 6864 §4.1, and splitting
///   numbers them anew);
/// - TCP: the same acknowledgment number, window, options and flags; payload; sequence numbers that follow on. PSH and FIN
///   complete a group; SYN, RST, URG and CWR are never joined;
/// - UDP: a checksum, and as many bytes as the first datagram or, in the last, fewer;
/// - right checksums, in the form that splitting would give them. They are verified when packets are joined only: a packet that
///   stays alone is left to the receiver's check.
public struct PacketJoiner: ~Copyable {
    /// How many packets can be appended before ``removeAll()``.
    @inlinable public static var capacity: Int { 128 }
    /// How many bytes a super-packet can have, headers included.
    @inlinable public static var maximumLength: Int { 65_535 }
    /// How many datagrams Linux takes as one UDP super-packet.
    @inlinable public static var maximumDatagrams: Int { 64 }

    /// Whether TCP segments are joined: true when the TUN device takes TSO packets.
    public var joinsTCP: Bool
    /// Whether UDP datagrams are joined: true when the TUN device takes USO packets.
    public var joinsUDP: Bool
    /// How many packets are joined into one at most. UDP has ``maximumDatagrams`` besides.
    public var maximumSegments: Int

    /// The number of packets to write: those joined, and those that stay alone. What ``finish(in:)`` has not completed is missing.
    public private(set) var count: Int

    /// One packet to write.
    private struct Item {
        var header: VirtioNetworkHeader
        var firstPiece: Int
        var pieceCount: Int
    }

    private var items: InlineArray<128, Item>
    private var pieces: InlineArray<128, Range<Int>>
    private var pieceCount: Int
    private var group: JoinedGroup?
    private let passedByAddress = PassedByAddress()

    /// An empty joiner, which allocates nothing.
    public init(joinsTCP: Bool = true, joinsUDP: Bool = true, maximumSegments: Int = PacketJoiner.capacity) {
        self.joinsTCP = joinsTCP
        self.joinsUDP = joinsUDP
        self.maximumSegments = maximumSegments
        count = 0
        items = InlineArray(repeating: Item(header: VirtioNetworkHeader(), firstPiece: 0, pieceCount: 0))
        pieces = InlineArray(repeating: 0..<0)
        pieceCount = 0
    }

    /// True when no packet can be appended before ``removeAll()``.
    @inlinable public var isFull: Bool { remainingCapacity == 0 }

    /// How many packets can still be appended.
    public var remainingCapacity: Int { Self.capacity - pieceCount }

    /// Forgets everything, for another train.
    public mutating func removeAll() {
        count = 0
        pieceCount = 0
        group = nil
    }

    /// Takes the packet in `packet`, a range of `buffer` that ends where its IP header says. The headers of packets appended before
    /// may change: those of a super-packet replace those of its first packet. Any bytes are fine: what is no packet to be joined
    /// stays alone, unchanged. Traps when the joiner is full or the range outside the buffer.
    public mutating func append(_ packet: Range<Int>, in buffer: inout MutableRawSpan) {
        precondition(pieceCount < Self.capacity, "a full joiner")
        precondition(packet.lowerBound >= 0 && packet.upperBound <= buffer.byteCount, "a packet outside the buffer")
        let headers = JoinableHeaders(of: packet, in: buffer.bytes)
        if let headers {
            let limit = headers.isTCP ? maximumSegments : min(maximumSegments, Self.maximumDatagrams)
            switch group?.append(headers, in: buffer.bytes, maximumSegments: limit) {
            case .joined:
                addPiece(packet.lowerBound + headers.headersLength..<packet.upperBound)
                return
            case .joinedAsLast:
                addPiece(packet.lowerBound + headers.headersLength..<packet.upperBound)
                completeGroup(in: &buffer)
                return
            case .invalidChecksum:
                completeGroup(in: &buffer)
                addAlone(packet)
                return
            case .refused, nil: break
            }
        }
        completeGroup(in: &buffer)
        if let headers, !headers.isLast, headers.isTCP ? joinsTCP : joinsUDP {
            group = JoinedGroup(first: headers)
            addPiece(packet)
        } else {
            addAlone(packet)
        }
    }

    /// Completes the last super-packet. Call it after the last ``append(_:in:)``, before reading what there is to write.
    public mutating func finish(in buffer: inout MutableRawSpan) {
        completeGroup(in: &buffer)
    }

    /// The packet to write at `index` (from zero): its virtio header, to be written first, and the numbers of its pieces, to be
    /// written next. See ``piece(_:)``.
    public subscript(index: Int) -> (header: VirtioNetworkHeader, pieces: Range<Int>) {
        precondition(index >= 0 && index < count, "no such packet")
        let item = items[index]
        return (item.header, item.firstPiece..<item.firstPiece + item.pieceCount)
    }

    /// The range of the buffer that holds a piece: a packet's first piece is a whole packet, the others are payload.
    public func piece(_ number: Int) -> Range<Int> {
        precondition(number >= 0 && number < pieceCount, "no such piece")
        return pieces[number]
    }

    private mutating func addPiece(_ range: Range<Int>) {
        pieces[pieceCount] = range
        pieceCount += 1
    }

    private mutating func addAlone(_ packet: Range<Int>) {
        items[count] = Item(header: VirtioNetworkHeader(), firstPiece: pieceCount, pieceCount: 1)
        count += 1
        addPiece(packet)
    }

    private mutating func completeGroup(in buffer: inout MutableRawSpan) {
        guard let group else { return }
        items[count] = Item(
            header: group.complete(in: &buffer), firstPiece: pieceCount - group.segmentCount,
            pieceCount: group.segmentCount)
        count += 1
        self.group = nil
    }
}
