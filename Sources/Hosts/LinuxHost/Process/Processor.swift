internal import Glibc

/// The processor that a thread runs on.
enum Processor {
    /// Lets others that wait for this processor run first. Where nobody waits the thread goes on at once.
    static func yield() {
        // It always succeeds.
        _ = sched_yield()
    }
}
