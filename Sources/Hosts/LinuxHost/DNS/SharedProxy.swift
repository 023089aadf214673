internal import DNSProxy
internal import Provider

/// The DNS proxy, which the threads that read queries use one at a time, with the clients that wait for its answers.
///
/// One thread, the proxy's own, does what the proxy wants done: asks servers, gives answers, looks at deadlines. Any other thread that
/// gave it a query calls ``wakeIfNeeded()`` afterwards.
///
/// Sharing it is sound: what it holds is reached only between `lock()` and `unlock()`.
@safe final class SharedProxy: @unchecked Sendable {
    /// What the lock is for. It has memory of its own, where the runtime does not check at every query that nobody else has it: the
    /// lock makes sure of that.
    private struct State: ~Copyable {
        var proxy = DNSProxyProvider()
        var datagramClients = DatagramClients()
        var queryLog = QueryLog()
    }

    /// Tells programs that wait for the next query.
    let news: QueryNews
    /// Readable when the proxy's own thread is to take its actions.
    let wakeUp: WakeUp
    private let state: UnsafeMutablePointer<State>
    private let mutex = ThreadLock()

    init(news: QueryNews? = nil) throws(SystemCallError) {
        self.news = if let news { news } else { try QueryNews() }
        wakeUp = try WakeUp()
        unsafe state = .allocate(capacity: 1)
        unsafe state.initialize(to: State())
    }

    deinit {
        // Nobody has a reference any more, so nobody holds the lock.
        unsafe state.deinitialize(count: 1)
        unsafe state.deallocate()
    }

    /// The proxy. Only for who holds the lock.
    var proxy: DNSProxyProvider {
        // Initialized as long as the object lives, as is all of the state.
        @inline(__always) _read { yield unsafe state.pointee.proxy }
        @inline(__always) _modify { yield unsafe &state.pointee.proxy }
    }

    /// The clients by UDP that wait. Only for who holds the lock.
    var datagramClients: DatagramClients {
        @inline(__always) _read { yield unsafe state.pointee.datagramClients }
        @inline(__always) _modify { yield unsafe &state.pointee.datagramClients }
    }

    /// How queries were answered lately. Only for who holds the lock.
    var queryLog: QueryLog {
        @inline(__always) _read { yield unsafe state.pointee.queryLog }
        @inline(__always) _modify { yield unsafe &state.pointee.queryLog }
    }

    /// Waits for the proxy.
    @inline(__always)
    func lock() { mutex.lock() }

    /// Gives the proxy back.
    @inline(__always)
    func unlock() { mutex.unlock() }

    /// Calls `body` with the proxy, alone.
    func withProxy<Result>(_ body: (inout DNSProxyProvider) -> Result) -> Result {
        lock()
        defer { unlock() }
        return body(&proxy)
    }

    /// Wakes the proxy's own thread when there is something for it to do. Not for who holds the lock.
    func wakeIfNeeded() {
        if withProxy({ $0.hasActions }) { wakeUp.signal() }
    }
}
