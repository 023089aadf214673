internal import CNetlink
internal import Glibc

/// The owner of one of libnl's sockets.
@safe struct NetlinkSocket: ~Copyable {
    /// What the event loop watches: the same open descriptor that libnl uses, under a number of its own, so that each
    /// side closes what it owns.
    let descriptor: FileDescriptor
    // nl_sock is opaque. Allocated in init, freed in deinit, used by this type only.
    private let handle: OpaquePointer

    /// Wraps a bound, non-blocking NETLINK_ROUTE socket.
    init(adopting socket: consuming FileDescriptor) throws(NetlinkError) {
        guard let handle = unsafe nl_socket_alloc() else { throw .library(NLE_NOMEM) }
        let duplicate: FileDescriptor
        do throws(SystemCallError) {
            duplicate = try socket.duplicate()
        } catch {
            unsafe nl_socket_free(handle)
            throw .refused(errno: error.errno)
        }
        let number = duplicate.release()
        let result = unsafe nl_socket_set_fd(handle, NETLINK_ROUTE, number)
        if result < 0 {
            // libnl did not take the number.
            _ = close(number)
            unsafe nl_socket_free(handle)
            throw .library(-result)
        }
        unsafe nl_socket_disable_auto_ack(handle)
        unsafe nl_socket_disable_seq_check(handle)
        descriptor = socket
        unsafe self.handle = handle
    }

    deinit {
        unsafe nl_socket_free(handle)
    }

    /// Sends a message, which it frees, and returns its sequence number.
    func send(_ message: OpaquePointer) throws(NetlinkError) -> UInt32 {
        defer { unsafe nlmsg_free(message) }
        let result = unsafe nl_send_auto(handle, message)
        if result < 0 { throw .library(-result) }
        // The message has a header, which nl_send_auto completed.
        return unsafe nlmsg_hdr(message).pointee.nlmsg_seq
    }

    /// What `receive` found.
    enum Reception {
        /// One datagram from the kernel.
        case datagram
        /// There is none at present.
        case nothing
        /// The kernel had to drop some.
        case overrun
    }

    /// Reads one datagram and calls `body` with each message in it. The pointer is good during the call only.
    func receive(_ body: (UnsafeMutablePointer<nlmsghdr>) -> Void) throws(NetlinkError) -> Reception {
        var sender = sockaddr_nl()
        var bytes: UnsafeMutablePointer<UInt8>? = nil
        // libnl allocates as much as the datagram has, and hands it over.
        let result = unsafe nl_recv(handle, &sender, &bytes, nil)
        defer { unsafe free(bytes) }
        if result == 0 || result == -NLE_AGAIN { return .nothing }
        // This is what libnl makes of ENOBUFS.
        if result == -NLE_NOMEM { return .overrun }
        if result < 0 { throw .library(-result) }
        guard let bytes = unsafe bytes, sender.nl_pid == 0 else {
            // Another process wrote to us: only the kernel is believed.
            return .datagram
        }
        // malloc aligns for any header. nlmsg_ok checks that each message lies within what is left.
        var remaining = result
        var header = unsafe UnsafeMutableRawPointer(bytes).assumingMemoryBound(to: nlmsghdr.self)
        while unsafe nlmsg_ok(header, remaining) != 0 {
            unsafe body(header)
            unsafe header = nlmsg_next(header, &remaining)
        }
        return .datagram
    }
}
