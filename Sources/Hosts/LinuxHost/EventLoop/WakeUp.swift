internal import CLinux
internal import Glibc

/// Wakes an event loop from another thread (eventfd).
struct WakeUp: ~Copyable, Sendable {
    /// What the loop watches for reading.
    let descriptor: FileDescriptor

    /// A wake-up that has not been asked for yet.
    init() throws(SystemCallError) {
        descriptor = FileDescriptor(
            adopting: try systemCall("eventfd") {
                eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
            })
    }

    /// Makes the descriptor readable. Any thread may call it, any number of times.
    func signal() {
        // Fails only when the counter is full, and then the descriptor is readable already.
        _ = eventfd_write(descriptor.rawValue, 1)
    }

    /// Makes the descriptor unreadable again. True when it was signalled since the last call.
    func clear() -> Bool {
        var count: eventfd_t = 0
        // The pointer lives for the call; nothing to read is an error.
        return unsafe eventfd_read(descriptor.rawValue, &count) == 0
    }
}
