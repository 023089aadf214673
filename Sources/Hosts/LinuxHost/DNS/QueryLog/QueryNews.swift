internal import Synchronization

/// Tells the thread that answers programs that there are new queries in the log: only when a program waits for some, so that a busy
/// proxy does not wake it for nothing.
final class QueryNews: Sendable {
    /// Readable when there are new queries.
    let wakeUp: WakeUp
    private let isAwaited = Atomic(false)

    /// Nobody waits.
    init() throws(SystemCallError) {
        wakeUp = try WakeUp()
    }

    /// Have the next query told. For who holds the proxy and has seen that there is none yet.
    func await() { isAwaited.store(true, ordering: .relaxed) }

    /// There is a new query. For who holds the proxy.
    func tell() {
        guard isAwaited.load(ordering: .relaxed) else { return }
        isAwaited.store(false, ordering: .relaxed)
        wakeUp.signal()
    }
}
