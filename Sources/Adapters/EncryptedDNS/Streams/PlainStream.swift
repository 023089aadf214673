internal import ByteAccess
public import SecureStream

/// TCP as it is: what is written is what goes to the network.
public struct PlainStream: ~Copyable, ByteStream {
    public static var isEncrypted: Bool { false }

    public private(set) var state = TLSState.established
    public var negotiatedProtocol: String? { nil }
    private var incoming = ByteQueue()
    private var outgoing = ByteQueue()

    /// A stream with nothing in it.
    public init() {}

    public var outgoingCount: Int { outgoing.count }

    public mutating func receive(_ bytes: RawSpan) throws(TLSError) {
        guard state == .established else { throw .closed }
        incoming.append(bytes)
    }

    public mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int { outgoing.move(into: &output) }

    public mutating func write(_ plaintext: RawSpan) throws(TLSError) {
        guard state == .established else { throw .closed }
        outgoing.append(plaintext)
    }

    public mutating func read(into output: inout MutableRawSpan) throws(TLSError) -> TLSReadResult {
        if incoming.count > 0 { return .bytes(incoming.move(into: &output)) }
        return state == .established ? .needsInput : .closed
    }

    public func makeSession() -> TLSSession? { nil }

    public mutating func close() { state = .closed }
}

/// Bytes that go out in the order they came in.
struct ByteQueue {
    private var bytes: [UInt8] = []
    /// How many at the start have gone.
    private var start = 0

    var count: Int { bytes.count - start }

    mutating func append(_ more: RawSpan) {
        if start == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            start = 0
        }
        // Every bit pattern is a byte.
        unsafe more.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
    }

    mutating func move(into output: inout MutableRawSpan) -> Int {
        let moved = min(count, output.byteCount)
        output.copy(bytes.span.octets.extracting(start..<start + moved), to: 0)
        start += moved
        if start == bytes.count, bytes.capacity > 65_536 { self = ByteQueue() }
        return moved
    }
}
