internal import DNSProxy
internal import Glibc
internal import Provider

/// The DNS proxy, which the threads that read queries use one at a time, with the clients that wait for its answers.
///
/// One thread, the proxy's own, does what the proxy wants done: asks servers, gives answers, looks at deadlines. Any other thread that
/// gave it a query calls ``wakeIfNeeded()`` afterwards.
///
/// Sharing it is sound: what it holds is reached only between `lock()` and `unlock()`.
@safe final class SharedProxy: @unchecked Sendable {
    /// The proxy. Only for who holds the lock.
    var proxy: DNSProxyProvider
    /// The clients by UDP that wait. Only for who holds the lock.
    var datagramClients = DatagramClients()
    /// How queries were answered lately. Only for who holds the lock.
    var queryLog = QueryLog()
    /// Tells programs that wait for the next query.
    let news: QueryNews
    /// Readable when the proxy's own thread is to take its actions.
    let wakeUp: WakeUp
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    init(news: QueryNews? = nil) throws(SystemCallError) {
        self.news = if let news { news } else { try QueryNews() }
        wakeUp = try WakeUp()
        proxy = DNSProxyProvider()
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        // The default attributes are always accepted.
        unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        // Nobody has a reference any more, so nobody holds the lock.
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Waits for the proxy.
    @inline(__always)
    func lock() {
        // Initialized as long as the object lives.
        unsafe pthread_mutex_lock(mutex)
    }

    /// Gives the proxy back.
    @inline(__always)
    func unlock() {
        // As above; the caller holds it.
        unsafe pthread_mutex_unlock(mutex)
    }

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
