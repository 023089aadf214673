internal import CLinux
internal import Glibc

/// The signals that a daemon acts on.
enum Signal: Int32, CaseIterable, Sendable {
    case hangUp = 1
    case interrupt = 2
    case terminate = 15
}

/// Signals as something to read (signalfd). They are blocked in the calling thread and in the threads it starts later:
/// to be created before there are any others.
struct SignalDescriptor: ~Copyable {
    /// What the loop watches for reading.
    let descriptor: FileDescriptor

    /// Blocks `signals` and opens a descriptor for them.
    init(_ signals: [Signal]) throws(SystemCallError) {
        var set = sigset_t()
        // The pointers live for each call; the numbers are valid, so none of these calls fails.
        unsafe sigemptyset(&set)
        for signal in signals { unsafe sigaddset(&set, signal.rawValue) }
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
        descriptor = FileDescriptor(
            adopting: try systemCall("signalfd") {
                unsafe signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
            })
    }

    /// The next signal that has come in; nil when there is none.
    func next() throws(SystemCallError) -> Signal? {
        while true {
            var information = signalfd_siginfo()
            // The pointer lives for the call and the size is the structure's.
            let count = unsafe read(descriptor.rawValue, &information, MemoryLayout<signalfd_siginfo>.size)
            if count == MemoryLayout<signalfd_siginfo>.size {
                return Signal(rawValue: Int32(bitPattern: information.ssi_signo))
            }
            let error = errno
            if error == EAGAIN { return nil }
            if error != EINTR { throw SystemCallError("read(signalfd)", errno: error) }
        }
    }
}
