internal import CLinux
internal import Glibc
internal import WireGuard

/// A datagram that a batch holds, or several of one sender that the kernel joined (`UDP_GRO`): all came on the same path with
/// the same traffic class.
struct ReceivedDatagram: Equatable {
    /// The length in bytes of all of it.
    var length: Int
    /// Who sent it, and the local end that it came to.
    var path: Path
    /// The outer header's IPv4 TOS or IPv6 traffic class: DSCP and ECN.
    var trafficClass: UInt8
    /// With UDP_GRO: the length of each datagram in the train, the last one perhaps excepted; 0 without a train.
    var segmentSize: Int

    /// Where each of the joined datagrams lies in the bytes: one behind the other.
    @inline(__always)
    var train: MessageTrain {
        guard segmentSize > 0, segmentSize < length else { return MessageTrain(offset: 0, length: length) }
        let whole = (length - 1) / segmentSize
        return MessageTrain(
            offset: 0, count: whole + 1, stride: segmentSize, lastLength: length - whole * segmentSize)
    }
}

/// Room for a number of datagrams of any length, filled by one call and read and opened in place. Everything is
/// allocated once; memory that no datagram reaches is never touched and costs nothing.
@safe struct ReceiveBatch: ~Copyable {
    /// The room for each datagram in bytes: more than UDP can carry.
    static let datagramCapacity = 65_536
    /// The distance between datagrams in memory. The extra 2 KiB keep their starts from sharing cache sets, and keep a
    /// datagram of usual length within one page.
    private static let stride = datagramCapacity + 2_048

    /// How many datagrams one call can receive.
    let capacity: Int
    /// How many the last call received.
    private(set) var count = 0
    private let bytes: UnsafeMutableRawPointer
    private let messages: UnsafeMutablePointer<clinux_message>
    private let vectors: UnsafeMutablePointer<iovec>
    private let addresses: UnsafeMutableRawPointer
    private let controls: UnsafeMutableRawPointer

    /// Room for `capacity` datagrams.
    init(capacity: Int) {
        precondition(capacity > 0 && capacity <= 1_024, "a batch is 1 to 1,024 datagrams")
        self.capacity = capacity
        unsafe bytes = .allocate(byteCount: capacity * Self.stride, alignment: 4_096)
        unsafe messages = .allocate(capacity: capacity)
        unsafe messages.initialize(repeating: clinux_message(), count: capacity)
        unsafe vectors = .allocate(capacity: capacity)
        unsafe addresses = .allocate(byteCount: capacity * SocketAddress.capacity, alignment: 8)
        unsafe controls = .allocate(byteCount: capacity * ControlMessages.capacity, alignment: 8)
        for index in 0..<capacity {
            // Each slot lies within its allocation, and all allocations live as long as this value.
            unsafe vectors.advanced(by: index).initialize(
                to: iovec(iov_base: bytes + index * Self.stride, iov_len: Self.datagramCapacity))
            unsafe messages[index].header.msg_iov = vectors + index
            unsafe messages[index].header.msg_iovlen = 1
            unsafe messages[index].header.msg_name = addresses + index * SocketAddress.capacity
            unsafe messages[index].header.msg_control = controls + index * ControlMessages.capacity
        }
    }

    deinit {
        // All of it is trivial: nothing to deinitialize.
        unsafe bytes.deallocate()
        unsafe messages.deallocate()
        unsafe vectors.deallocate()
        unsafe addresses.deallocate()
        unsafe controls.deallocate()
    }

    /// Receives what is there, up to the capacity or to `limit`, and returns how many datagrams, joined or not, that is: 0 when
    /// there are none. What
    /// the last call received is gone.
    ///
    /// A slot costs the memory of the longest datagram that it ever held. Joined ones have up to 64 KiB, and few of them make
    /// a batch: with `UDP_GRO` a limit of 8 to 16 is enough.
    mutating func receive(
        from socket: borrowing UDPSocket, limit: Int = .max
    ) throws(SystemCallError) -> Int {
        precondition(limit > 0, "a call that receives nothing")
        count = 0
        let room = min(capacity, limit)
        for index in 0..<room {
            // In bounds. The kernel shortens these to what it stored, so they are set before every call.
            unsafe messages[index].header.msg_namelen = socklen_t(SocketAddress.capacity)
            unsafe messages[index].header.msg_controllen = ControlMessages.capacity
        }
        while true {
            // Every message points at storage of ours, with the lengths set above.
            let result = unsafe clinux_recvmmsg(socket.descriptor.rawValue, messages, UInt32(room))
            if result >= 0 {
                count = Int(result)
                return count
            }
            let error = errno
            if error == EAGAIN { return 0 }
            if error != EINTR { throw SystemCallError("recvmmsg", errno: error) }
        }
    }

    /// Datagram `index` of the last call; nil when it came without a usable address.
    @inline(__always)
    func datagram(at index: Int) -> ReceivedDatagram? {
        precondition(index >= 0 && index < count, "no such datagram")
        // In bounds by the precondition. The kernel set the lengths, to at most the room that it was given.
        let message = unsafe messages[index]
        let address = unsafe RawSpan(
            _unsafeStart: addresses + index * SocketAddress.capacity,
            byteCount: min(Int(message.header.msg_namelen), SocketAddress.capacity))
        let control = unsafe RawSpan(
            _unsafeStart: controls + index * ControlMessages.capacity,
            byteCount: min(message.header.msg_controllen, ControlMessages.capacity))
        guard let remote = SocketAddress.read(address) else { return nil }
        let received = ControlMessages.read(control)
        return unsafe ReceivedDatagram(
            length: min(Int(message.length), Self.datagramCapacity),
            path: Path(remote: remote, source: received.source), trafficClass: received.trafficClass,
            segmentSize: received.segmentSize)
    }

    /// The bytes of datagram `index`, to be read and changed in place.
    @_lifetime(&self)
    @inline(__always)
    mutating func bytes(at index: Int) -> MutableRawSpan {
        precondition(index >= 0 && index < count, "no such datagram")
        // In bounds by the precondition; the kernel wrote `length` bytes there. Nobody else reaches them while `self`
        // is borrowed.
        let span = unsafe MutableRawSpan(
            _unsafeStart: bytes + index * Self.stride,
            byteCount: min(Int(messages[index].length), Self.datagramCapacity))
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Where datagram `index` begins in `allBytes()`.
    @inline(__always)
    func offset(of index: Int) -> Int { index * Self.stride }

    /// The bytes of all datagrams, each at its offset. What lies between them is unspecified.
    @_lifetime(&self)
    @inline(__always)
    mutating func allBytes() -> MutableRawSpan {
        // The whole allocation. Nobody else reaches it while `self` is borrowed.
        let span = unsafe MutableRawSpan(_unsafeStart: bytes, byteCount: capacity * Self.stride)
        return unsafe _overrideLifetime(span, mutating: &self)
    }
}
