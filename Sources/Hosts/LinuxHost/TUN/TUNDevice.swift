internal import ByteAccess
internal import CLinux
internal import Glibc
internal import IPPacket

/// One queue of a TUN device: whole IP packets, one a call, without a packet-information header. It never waits.
///
/// ```
///  headerLength 0          headerLength 10 or 12
///  ┌────────────────┐      ┌───────────────┬──────────────────────────────┐
///  │ a packet       │      │ virtio header │ a packet or a super-packet   │
///  └────────────────┘      └───────────────┴──────────────────────────────┘
/// ```
///
/// The descriptor keeps working when the interface moves to another network namespace or is renamed.
@safe struct TUNDevice: ~Copyable {
    /// What the event loop watches.
    let descriptor: FileDescriptor
    /// What the privileged side knows the device by.
    let identifier: DeviceIdentifier
    /// The bytes of the virtio header (VIRTIO 1.2 §5.1.6, struct virtio_net_hdr, in host byte order) before each packet that
    /// is read: 0 without one, 10, or 12, the last two of which mean nothing.
    let headerLength: Int
    /// What the kernel leaves unfinished in packets that are read.
    private(set) var offloads: TUNOffloads
    // Room for the vectors of one call and for a header. Allocated in init, freed in deinit, used during a call only.
    private let vectors: UnsafeMutablePointer<iovec>
    private let header: UnsafeMutableRawPointer

    /// The most bytes that one packet has, without its virtio header.
    static let maximumPacketLength = 65_535
    /// How many pieces a packet can be gathered from.
    private static let maximumPieces = PacketJoiner.capacity
    private static let headerCapacity = 16

    /// Takes over a descriptor that the privileged side opened.
    init(
        adopting descriptor: consuming FileDescriptor, identifier: DeviceIdentifier, headerLength: Int = 0,
        offloads: TUNOffloads = .none
    ) {
        precondition(headerLength >= 0 && headerLength <= Self.headerCapacity, "no such virtio header")
        self.descriptor = descriptor
        self.identifier = identifier
        self.headerLength = headerLength
        self.offloads = offloads
        unsafe vectors = .allocate(capacity: 1 + Self.maximumPieces)
        unsafe vectors.initialize(repeating: iovec(), count: 1 + Self.maximumPieces)
        unsafe header = .allocate(byteCount: Self.headerCapacity, alignment: 8)
        unsafe header.initializeMemory(as: UInt8.self, repeating: 0, count: Self.headerCapacity)
    }

    deinit {
        // Both are trivial: nothing to deinitialize.
        unsafe vectors.deallocate()
        unsafe header.deallocate()
    }

    /// The room in bytes that a read needs.
    var maximumFrameLength: Int { headerLength + Self.maximumPacketLength }

    /// Reads the next packet to the start of `buffer`, its virtio header before it, and returns the length of both; nil when
    /// there is none. What does not fit `buffer` is cut off.
    func read(into buffer: inout MutableRawSpan) throws(TUNError) -> Int? {
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                // The pointer and the length are the span's own.
                unsafe Glibc.read(descriptor.rawValue, bytes.baseAddress, bytes.count)
            }
            if count >= 0 { return count }
            let error = errno
            if error == EAGAIN { return nil }
            if error != EINTR { throw TUNError("read(tun)", errno: error) }
        }
    }

    /// Hands one finished packet to the kernel: where there is a virtio header, it says so by being zero. False when the
    /// kernel has no room: the packet is dropped.
    func write(_ packet: RawSpan) throws(TUNError) -> Bool {
        if headerLength > 0 { return try write(packet, header: VirtioNetworkHeader()) }
        return try unsafe packet.withUnsafeBytes { bytes throws(TUNError) in
            // The vector is ours, and the pointer and the length are the span's own.
            unsafe vectors[0] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
            return try unsafe writeVectors(1)
        }
    }

    /// Hands one packet or super-packet to the kernel behind a virtio header, which the device must have. False when the
    /// kernel has no room: the packet is dropped.
    func write(_ packet: RawSpan, header: VirtioNetworkHeader) throws(TUNError) -> Bool {
        setHeader(header)
        return try unsafe packet.withUnsafeBytes { bytes throws(TUNError) in
            // The vector is ours, and the pointer and the length are the span's own.
            unsafe vectors[1] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
            return try writeFrame(header, pieces: 1)
        }
    }

    /// Hands the packet at `index` of a joiner to the kernel, from where its pieces lie in `buffer`. The device must have
    /// virtio headers. False when the kernel has no room: the packet is dropped.
    ///
    /// - Throws: `superPacketRefused` when it is a super-packet that the kernel does not take; `writeSeparately` can.
    func write(_ index: Int, of joiner: borrowing PacketJoiner, in buffer: RawSpan) throws(TUNError) -> Bool {
        let (header, pieces) = joiner[index]
        setHeader(header)
        return try unsafe buffer.withUnsafeBytes { bytes throws(TUNError) in
            var slot = 1
            for number in pieces {
                let piece = joiner.piece(number)
                precondition(piece.lowerBound >= 0 && piece.upperBound <= bytes.count, "a piece outside of the buffer")
                // A joiner has no more pieces than there are slots. An empty buffer, which alone has no address, has only
                // empty pieces.
                unsafe vectors[slot] = iovec(
                    iov_base: bytes.baseAddress.map { unsafe UnsafeMutableRawPointer(mutating: $0 + piece.lowerBound) },
                    iov_len: piece.count)
                slot += 1
            }
            return try writeFrame(header, pieces: pieces.count)
        }
    }

    /// Changes what the kernel leaves unfinished from the next packet on; those that wait to be read stay as they are. Only a
    /// device with virtio headers can leave anything unfinished. The link forwards and sends as before, a packet at a time.
    mutating func setOffloads(_ offloads: TUNOffloads) throws(TUNError) {
        precondition(headerLength > 0 || offloads == .none, "offloads need virtio headers")
        guard clinux_tun_set_offloads(descriptor.rawValue, offloads.bits) == 0 else {
            throw TUNError("ioctl(TUNSETOFFLOAD)", errno: errno)
        }
        self.offloads = offloads
    }

    /// True when the link is up, in whatever namespace it is. False also when the device is gone.
    var isLinkUp: Bool {
        var entry = pollfd(fd: descriptor.rawValue, events: Int16(POLLOUT), revents: 0)
        // The pointer lives for the call. A TUN device is writable exactly while its link is up.
        let count = unsafe poll(&entry, 1, 0)
        return count == 1 && entry.revents & Int16(POLLOUT) != 0
    }

    /// The interface's name at present.
    func currentName() throws(TUNError) -> InterfaceName {
        // IFNAMSIZ bytes, terminator included.
        let name = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(IFNAMSIZ)) { bytes -> String? in
            var flags: Int16 = 0
            // The function fills the buffer up to a terminator within IFNAMSIZ.
            guard let base = bytes.baseAddress,
                unsafe clinux_tun_get_interface(descriptor.rawValue, base, &flags) == 0
            else { return nil }
            return unsafe String(cString: base)
        }
        guard let name else { throw TUNError("ioctl(TUNGETIFF)", errno: errno) }
        do { return try InterfaceName(name) } catch { throw .other(SystemCallError("ioctl(TUNGETIFF)", errno: EINVAL)) }
    }
}

extension TUNDevice {
    /// Lets the first vector be a header.
    @inline(__always)
    private func setHeader(_ header: VirtioNetworkHeader) {
        precondition(headerLength > 0, "a device without virtio headers")
        // The storage is ours and larger than any header. What is behind the header's 10 bytes is zero from the beginning.
        var span = unsafe MutableRawSpan(_unsafeStart: self.header, byteCount: Self.headerCapacity)
        header.store(into: &span)
        unsafe vectors[0] = iovec(iov_base: self.header, iov_len: headerLength)
    }

    /// Writes the header and the pieces behind it.
    private func writeFrame(_ header: VirtioNetworkHeader, pieces: Int) throws(TUNError) -> Bool {
        do throws(TUNError) {
            // The callers filled the vectors with memory that lives for the call.
            return try unsafe writeVectors(1 + pieces)
        } catch {
            if error == .packetRefused, header.segmentation != .none { throw .superPacketRefused }
            throw error
        }
    }

    /// Writes the first `count` vectors, which the caller has filled with memory that lives at least for the call.
    @unsafe private func writeVectors(_ count: Int) throws(TUNError) -> Bool {
        while true {
            let result = unsafe writev(descriptor.rawValue, vectors, Int32(count))
            if result >= 0 { return true }
            let error = errno
            if error == EAGAIN || error == ENOBUFS || error == ENOMEM { return false }
            if error != EINTR { throw TUNError("write(tun)", errno: error) }
        }
    }
}
