internal import CLinux
internal import Glibc
internal import IPPacket
internal import WireGuard

/// Queries that one call received by UDP. Everything is allocated once; memory that no datagram reaches costs nothing.
@safe struct QueryBatch: ~Copyable {
    /// How many datagrams one call receives at most.
    static let capacity = 32
    /// The room for each in bytes: no datagram is longer.
    static let queryCapacity = 65_535
    /// From one datagram to the next: not a power of two, so that their first bytes do not take each other's places in caches.
    private static let stride = 65_536 + 64
    /// What usual queries are not longer than. The memory for the rest is given back.
    private static let usualByteCount = 4_096

    /// How many datagrams the last call received.
    private(set) var count = 0
    private let bytes: ZeroedBuffer
    private let addresses: ZeroedBuffer
    private let controls: ZeroedBuffer
    private let messages: UnsafeMutablePointer<clinux_message>
    private let vectors: UnsafeMutablePointer<iovec>

    /// A batch that holds nothing yet.
    init() {
        bytes = ZeroedBuffer(byteCount: Self.capacity * Self.stride)
        addresses = ZeroedBuffer(byteCount: Self.capacity * SocketAddress.capacity)
        controls = ZeroedBuffer(byteCount: Self.capacity * ControlMessages.capacity)
        unsafe messages = .allocate(capacity: Self.capacity)
        unsafe messages.initialize(repeating: clinux_message(), count: Self.capacity)
        unsafe vectors = .allocate(capacity: Self.capacity)
        for index in 0..<Self.capacity {
            // Each slot lies within its allocation, and all allocations live as long as this value.
            unsafe vectors.advanced(by: index).initialize(
                to: iovec(iov_base: bytes.address(of: index * Self.stride), iov_len: Self.queryCapacity))
            unsafe messages[index].header.msg_iov = vectors + index
            unsafe messages[index].header.msg_iovlen = 1
            unsafe messages[index].header.msg_name = addresses.address(of: index * SocketAddress.capacity)
            unsafe messages[index].header.msg_control = controls.address(of: index * ControlMessages.capacity)
        }
    }

    deinit {
        // All of it is trivial: nothing to deinitialize.
        unsafe messages.deallocate()
        unsafe vectors.deallocate()
    }

    /// Receives what is there, up to the capacity. What the last call received is gone.
    ///
    /// An error that the kernel reports is about a datagram that was sent before, and is no reason not to read on: whoever it was
    /// for asks again.
    mutating func receive(from socket: borrowing FileDescriptor) {
        for index in 0..<count where unsafe messages[index].length > Self.usualByteCount {
            bytes.release(from: index * Self.stride + Self.usualByteCount, to: index * Self.stride + Self.queryCapacity)
        }
        count = 0
        for index in 0..<Self.capacity {
            // In bounds. The kernel shortens these to what it stored, so they are set before every call.
            unsafe messages[index].header.msg_namelen = socklen_t(SocketAddress.capacity)
            unsafe messages[index].header.msg_controllen = ControlMessages.capacity
        }
        // Each failure takes one pending error off the socket. More of them than datagrams in a batch are for the next turn.
        for _ in 0..<Self.capacity {
            // Every message points at storage of ours, with the lengths set above.
            let result = unsafe clinux_recvmmsg(socket.rawValue, messages, UInt32(Self.capacity))
            if result >= 0 {
                count = Int(result)
                return
            }
            if errno == EAGAIN { return }
        }
    }

    /// Who sent datagram `index`; nil when it came without a usable address.
    @inline(__always)
    func client(at index: Int) -> Endpoint? { SocketAddress.read(address(at: index)) }

    /// True when `client(at:)` has somebody.
    @inline(__always)
    func hasClient(at index: Int) -> Bool { SocketAddress.isUsable(address(at: index)) }

    /// Who sent datagram `index`, as the kernel has it.
    @_lifetime(borrow self)
    @inline(__always)
    func address(at index: Int) -> RawSpan {
        precondition(index >= 0 && index < count, "no such datagram")
        let start = index * SocketAddress.capacity
        // In bounds by the precondition. The kernel set the length, to at most the room that it was given.
        let length = min(Int(unsafe messages[index].header.msg_namelen), SocketAddress.capacity)
        let span = addresses.bytes.extracting(start..<start + length)
        // The buffer lives as long as this value.
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// The local end that datagram `index` came to; nil when the kernel does not tell.
    @inline(__always)
    func localSource(at index: Int) -> LocalSource? {
        precondition(index >= 0 && index < count, "no such datagram")
        let start = index * ControlMessages.capacity
        // In bounds by the precondition. The kernel set the length, to at most the room that it was given.
        let length = min(unsafe messages[index].header.msg_controllen, ControlMessages.capacity)
        return ControlMessages.read(controls.bytes.extracting(start..<start + length)).source
    }

    /// The bytes of datagram `index`.
    @_lifetime(borrow self)
    @inline(__always)
    func bytes(at index: Int) -> RawSpan {
        precondition(index >= 0 && index < count, "no such datagram")
        let start = index * Self.stride
        // In bounds by the precondition; the kernel wrote at most the room that it was given.
        let length = min(Int(unsafe messages[index].length), Self.queryCapacity)
        let span = bytes.bytes.extracting(start..<start + length)
        // The buffer lives as long as this value.
        return unsafe _overrideLifetime(span, borrowing: self)
    }
}
