internal import ByteAccess
internal import CLinux
internal import DNSProxy
internal import Glibc
internal import WireGuard

/// Answers that wait to be sent together by one socket, each a datagram of its own, in one buffer that the proxy writes into.
/// Everything is allocated once; memory that no answer reaches costs nothing.
@safe struct AnswerBatch: ~Copyable {
    /// How many answers fit.
    static let capacity = 2 * QueryBatch.capacity
    /// How many bytes: a full batch of usual answers, and the room that the proxy asks for behind them.
    private static let byteCapacity = 2 * DNSProxyProvider.answerCapacity

    /// How many answers wait.
    private(set) var count = 0
    private var used = 0
    private var bytes: ZeroedBuffer
    private var addresses: ZeroedBuffer
    private var controls: ZeroedBuffer
    private let messages: UnsafeMutablePointer<clinux_message>
    private let vectors: UnsafeMutablePointer<iovec>

    /// An empty batch.
    init() {
        bytes = ZeroedBuffer(byteCount: Self.byteCapacity)
        addresses = ZeroedBuffer(byteCount: Self.capacity * SocketAddress.capacity)
        controls = ZeroedBuffer(byteCount: Self.capacity * ControlMessages.capacity)
        unsafe messages = .allocate(capacity: Self.capacity)
        unsafe messages.initialize(repeating: clinux_message(), count: Self.capacity)
        unsafe vectors = .allocate(capacity: Self.capacity)
        unsafe vectors.initialize(repeating: iovec(), count: Self.capacity)
        for index in 0..<Self.capacity {
            // Each slot lies within its allocation, and all allocations live as long as this value.
            unsafe messages[index].header.msg_iov = vectors + index
            unsafe messages[index].header.msg_iovlen = 1
            unsafe messages[index].header.msg_name = addresses.address(of: index * SocketAddress.capacity)
        }
    }

    deinit {
        // All of it is trivial: nothing to deinitialize.
        unsafe messages.deallocate()
        unsafe vectors.deallocate()
    }

    /// True when another answer of any length fits.
    @inline(__always)
    var hasRoom: Bool { count < Self.capacity && Self.byteCapacity - used >= DNSProxyProvider.answerCapacity }

    /// Where the next answer is written before it is added.
    @_lifetime(&self)
    @inline(__always)
    mutating func unusedBytes() -> MutableRawSpan {
        bytes.mutableBytes(from: used)
    }

    /// Adds the answer that was written to `unusedBytes()`. There must be room for it.
    ///
    /// - Parameter source: What it comes from, when the socket alone does not say so.
    mutating func append(byteCount: Int, to client: Endpoint, from source: LocalSource?) {
        precondition(count < Self.capacity, "more answers than the batch has room for")
        let slot = count
        var address = addresses.mutableBytes(from: slot * SocketAddress.capacity)
        let addressLength = SocketAddress.write(client, to: &address)
        var controlLength = 0
        if let source {
            var control = controls.mutableBytes(from: slot * ControlMessages.capacity)
            let path = Path(remote: client, source: source)
            controlLength = ControlMessages.write(
                Transmission(peer: nil, path: path, trafficClass: 0), withSource: true, to: &control)
        }
        append(byteCount: byteCount, addressLength: addressLength, controlLength: controlLength)
    }

    /// Adds the answer that was written to `unusedBytes()`, for a client as the kernel has it. There must be room for it, and the socket
    /// alone has to say what it comes from.
    @inline(__always)
    mutating func append(byteCount: Int, to client: RawSpan) {
        precondition(count < Self.capacity, "more answers than the batch has room for")
        precondition(client.byteCount <= SocketAddress.capacity, "an address of no known kind")
        var address = addresses.mutableBytes(from: count * SocketAddress.capacity)
        address.copy(client, to: 0)
        append(byteCount: byteCount, addressLength: client.byteCount, controlLength: 0)
    }

    /// Adds an answer whose address and control messages are in their places.
    @inline(__always)
    private mutating func append(byteCount: Int, addressLength: Int, controlLength: Int) {
        precondition(count < Self.capacity, "more answers than the batch has room for")
        precondition(byteCount >= 0 && byteCount <= Self.byteCapacity - used, "an answer outside of the free bytes")
        let slot = count
        // In bounds by the preconditions.
        unsafe vectors[slot] = iovec(iov_base: bytes.address(of: used), iov_len: byteCount)
        unsafe messages[slot].header.msg_namelen = socklen_t(addressLength)
        unsafe messages[slot].header.msg_control =
            controlLength > 0 ? controls.address(of: slot * ControlMessages.capacity) : nil
        unsafe messages[slot].header.msg_controllen = controlLength
        used += byteCount
        count += 1
    }

    /// Sends what waits, and forgets it. What the kernel does not take is dropped and counted: clients ask again.
    mutating func flush(to socket: borrowing FileDescriptor, _ counts: inout DatagramCounts) {
        var index = 0
        var isRepeated = false
        while index < count {
            // In bounds by the condition of the loop; every message points at storage of ours.
            let result = unsafe clinux_sendmmsg(socket.rawValue, messages + index, UInt32(count - index))
            if result > 0 {
                counts.sent &+= UInt64(result)
                index += Int(result)
                isRepeated = false
                continue
            }
            let error = errno
            if error == EINTR { continue }
            if error == EAGAIN || error == ENOBUFS {
                counts.bufferFull &+= UInt64(count - index)
                break
            }
            // It may be about a datagram that was sent before: this one gets a second try.
            if !isRepeated {
                isRepeated = true
                continue
            }
            isRepeated = false
            counts.failed &+= 1
            index += 1
        }
        count = 0
        used = 0
    }
}
