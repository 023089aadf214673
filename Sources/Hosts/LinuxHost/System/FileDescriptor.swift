internal import Glibc

/// The only owner of an open file description's number: closes it when it goes away.
struct FileDescriptor: ~Copyable, Sendable {
    /// The number, valid as long as this value lives.
    let rawValue: Int32

    /// Takes over a descriptor that nobody else will close.
    init(adopting rawValue: Int32) {
        self.rawValue = rawValue
    }

    deinit {
        // The result tells nothing that could be acted on: on Linux the number is free either way.
        _ = close(rawValue)
    }

    /// Gives up ownership: the caller closes the number.
    consuming func release() -> Int32 {
        let number = rawValue
        discard self
        return number
    }

    /// A second descriptor for the same open file description, closed on exec.
    func duplicate() throws(SystemCallError) -> FileDescriptor {
        let number = rawValue
        return FileDescriptor(adopting: try systemCall("fcntl(F_DUPFD_CLOEXEC)") { fcntl(number, F_DUPFD_CLOEXEC, 0) })
    }

    /// Makes reads and writes return instead of waiting.
    func setNonBlocking() throws(SystemCallError) {
        let number = rawValue
        let flags = try systemCall("fcntl(F_GETFL)") { fcntl(number, F_GETFL) }
        _ = try systemCall("fcntl(F_SETFL)") { fcntl(number, F_SETFL, flags | O_NONBLOCK) }
    }

    /// Keeps the descriptor from programs that this process starts.
    func setCloseOnExec() throws(SystemCallError) {
        let number = rawValue
        _ = try systemCall("fcntl(F_SETFD)") { fcntl(number, F_SETFD, FD_CLOEXEC) }
    }
}
