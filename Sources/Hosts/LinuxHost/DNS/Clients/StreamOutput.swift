internal import ByteAccess
internal import DNSProxy
internal import Glibc
internal import Provider

/// Answers on their way to a client by TCP, each with its length in front, so that both leave together (RFC 7766 §8). Those of one
/// piece of the client's stream leave with one call.
struct StreamOutput: ~Copyable {
    private static let prefixLength = 2
    /// As many usual answers as a piece has queries, and the longest one behind them.
    private static let capacity = 2 * (prefixLength + DNSProxyProvider.answerCapacity)

    private var buffer = ZeroedBuffer(byteCount: Self.capacity)
    /// What encryption made of answers.
    var ciphertext = ZeroedBuffer(byteCount: 32_768)
    /// How many bytes wait for `send`.
    private(set) var count = 0

    /// Nothing waits.
    init() {}

    /// True when another answer of any length fits.
    var hasRoom: Bool { Self.capacity - count >= Self.prefixLength + DNSProxyProvider.answerCapacity }

    /// Where the next answer is written before it is added.
    @_lifetime(&self)
    mutating func answerRoom() -> MutableRawSpan {
        buffer.mutableBytes(from: count + Self.prefixLength)
    }

    /// The bytes that wait for `send`.
    var waitingBytes: RawSpan {
        @_lifetime(borrow self) get { buffer.bytes.extracting(..<count) }
    }

    /// The answer that was written to `answerRoom()` and is not added.
    @_lifetime(borrow self)
    func written(_ byteCount: Int) -> RawSpan {
        buffer.bytes.extracting(count + Self.prefixLength..<count + Self.prefixLength + byteCount)
    }

    /// Adds the answer that was written to `answerRoom()`.
    mutating func add(byteCount: Int) {
        precondition(byteCount <= Self.capacity - count - Self.prefixLength, "an answer outside of the free bytes")
        var bytes = buffer.mutableBytes(from: count)
        bytes.storeBigEndian(UInt16(byteCount), at: 0)
        count += Self.prefixLength + byteCount
    }

    /// Adds an answer, for which there must be room.
    mutating func add(_ answer: [UInt8]) {
        do {
            var room = answerRoom()
            room.copy(answer.span.octets, to: 0)
        }
        add(byteCount: answer.count)
    }

    /// Sends what waits, behind what the client has not taken yet. What it does not take now is kept for it.
    mutating func send(to client: StreamClient, at now: Instant) {
        defer { count = 0 }
        if count == 0 || client.isBroken { return }
        // A client that has taken everything begins to be slow now at the earliest.
        if client.unsentCount == 0 { client.lastActivity = now }
        if let channel = client.channel { return sendEncrypted(by: channel, to: client) }
        let sent = client.unsentCount == 0 ? Self.send(buffer.bytes.extracting(..<count), to: client) : 0
        if sent < count, !client.isBroken { client.keep(buffer.bytes.extracting(sent..<count)) }
    }

    /// Goes on sending what a client did not take at once.
    static func sendUnsent(to client: StreamClient, at now: Instant) {
        var unsent: [UInt8] = []
        swap(&unsent, &client.unsent)
        let sent = send(unsent.span.octets.extracting(client.sentCount...), to: client)
        client.sentCount += sent
        if client.sentCount == unsent.count {
            // All is taken, and the memory is given back.
            client.sentCount = 0
            client.lastActivity = now
        } else {
            swap(&unsent, &client.unsent)
        }
    }

    /// Sends as much as the connection takes; returns how many bytes that was.
    static func send(_ bytes: RawSpan, to client: StreamClient) -> Int {
        var offset = 0
        while offset < bytes.byteCount {
            let count = unsafe bytes.extracting(offset...).withUnsafeBytes { rest in
                // The pointer and the length are the span's own. A closed other end is an error and no signal.
                unsafe Glibc.send(client.descriptor.rawValue, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            }
            if count >= 0 {
                offset += count
                continue
            }
            let error = errno
            if error == EINTR { continue }
            if error != EAGAIN { client.isBroken = true }
            break
        }
        return offset
    }
}

extension StreamClient {
    /// Keeps bytes for it that could not leave.
    func keep(_ bytes: RawSpan) {
        var kept: [UInt8] = []
        swap(&kept, &unsent)
        // What has left is in the way of what comes.
        if sentCount > 0 {
            kept.removeFirst(sentCount)
            sentCount = 0
        }
        let start = kept.count
        kept.append(contentsOf: repeatElement(0, count: bytes.byteCount))
        do {
            var span = kept.mutableSpan
            var octets = span.mutableOctets
            octets.copy(bytes, to: start)
        }
        swap(&kept, &unsent)
    }
}
