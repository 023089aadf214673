internal import CLinux
internal import Glibc

/// A TUN device: whole IP packets, one a call, without a packet-information header. It never waits.
///
/// The descriptor keeps working when the interface moves to another network namespace or is renamed.
struct TUNDevice: ~Copyable {
    /// What the event loop watches.
    let descriptor: FileDescriptor
    /// What the privileged side knows the device by.
    let identifier: DeviceIdentifier

    /// The most bytes that one packet has, and so the room that a read needs.
    static let maximumPacketLength = 65_535

    /// Takes over a descriptor that the privileged side opened.
    init(adopting descriptor: consuming FileDescriptor, identifier: DeviceIdentifier) {
        self.descriptor = descriptor
        self.identifier = identifier
    }

    /// Reads the next packet to the start of `buffer` and returns its length; nil when there is none. A packet longer
    /// than `buffer` is cut off.
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

    /// Hands one packet to the kernel. False when it has no room: the packet is dropped.
    func write(_ packet: RawSpan) throws(TUNError) -> Bool {
        while true {
            let count = unsafe packet.withUnsafeBytes { bytes in
                // The pointer and the length are the span's own.
                unsafe Glibc.write(descriptor.rawValue, bytes.baseAddress, bytes.count)
            }
            if count >= 0 { return true }
            let error = errno
            if error == EAGAIN || error == ENOBUFS || error == ENOMEM { return false }
            if error != EINTR { throw TUNError("write(tun)", errno: error) }
        }
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
