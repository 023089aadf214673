internal import CLinux
internal import Glibc

/// A listening control socket.
struct UNIXListener: ~Copyable {
    /// What the event loop watches for reading.
    let descriptor: FileDescriptor
    /// What the privileged side knows the socket by.
    let identifier: ControlSocketIdentifier
    /// Tells when its file is removed.
    let watch: SocketFileWatch

    /// Takes over what the privileged side opened.
    init(
        adopting descriptor: consuming FileDescriptor, identifier: ControlSocketIdentifier,
        watch: consuming SocketFileWatch
    ) {
        self.descriptor = descriptor
        self.identifier = identifier
        self.watch = watch
    }

    /// Accepts the next connection, non-blocking; nil when there is none. A client that gave up in between is passed
    /// over.
    func accept() throws(SystemCallError) -> FileDescriptor? {
        while true {
            let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let number = clinux_accept4(descriptor.rawValue, flags)
            if number >= 0 { return FileDescriptor(adopting: number) }
            let error = errno
            if error == EAGAIN { return nil }
            if error != EINTR && error != ECONNABORTED { throw SystemCallError("accept4", errno: error) }
        }
    }
}
