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
        // Not by libnl's function: that fails at notices from other namespaces, which come with control data, and leaves
        // them where they are, so that the descriptor would stay readable for ever.
        do throws(SystemCallError) {
            let number = descriptor.rawValue
            // The length of the datagram, which stays; no byte is written.
            let length = try systemCall("recv") {
                recv(number, nil, 0, Int32(MSG_PEEK | MSG_TRUNC))
            }
            // As malloc would, it aligns for any header.
            let error = unsafe withUnsafeTemporaryAllocation(byteCount: max(length, 1), alignment: 16) { buffer in
                do throws(SystemCallError) {
                    var sender = sockaddr_nl()
                    let received = try systemCall("recvfrom") {
                        unsafe Self.receive(from: number, into: buffer, &sender)
                    }
                    // Another process may write to us: only the kernel is believed.
                    if sender.nl_pid == 0, let base = buffer.baseAddress {
                        unsafe Self.forEachMessage(in: base, count: received, body)
                    }
                    return nil as SystemCallError?
                } catch {
                    return error
                }
            }
            if let error { throw error }
            return .datagram
        } catch {
            switch error.errno {
            case EAGAIN: return .nothing
            case ENOBUFS: return .overrun
            default: throw .refused(errno: error.errno)
            }
        }
    }

    /// Takes a datagram. Its length, or a negative number.
    private static func receive(
        from number: Int32, into buffer: UnsafeMutableRawBufferPointer, _ sender: inout sockaddr_nl
    ) -> Int {
        unsafe withUnsafeMutablePointer(to: &sender) { sender in
            var length = socklen_t(MemoryLayout<sockaddr_nl>.size)
            // The kernel writes no more than both lengths say.
            return unsafe sender.withMemoryRebound(to: sockaddr.self, capacity: 1) { sender in
                unsafe recvfrom(number, buffer.baseAddress, buffer.count, 0, sender, &length)
            }
        }
    }

    private static func forEachMessage(
        in bytes: UnsafeMutableRawPointer, count: Int, _ body: (UnsafeMutablePointer<nlmsghdr>) -> Void
    ) {
        // nlmsg_ok checks that each message lies within what is left.
        var remaining = Int32(count)
        var header = unsafe bytes.assumingMemoryBound(to: nlmsghdr.self)
        while unsafe nlmsg_ok(header, remaining) != 0 {
            unsafe body(header)
            unsafe header = nlmsg_next(header, &remaining)
        }
    }
}
