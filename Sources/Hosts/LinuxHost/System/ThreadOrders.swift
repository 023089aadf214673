internal import CLinux
internal import Glibc

/// How an owner has a thread with an event loop do something between two turns, and waits for it.
///
/// ```
///  owner's thread                    the other thread
///    sets what is to be done
///    give() ────── wakeUp ────▶ its loop: wakeUp.clear(), does it
///      (waits)  ◀─ semaphore ──  carriedOut()
/// ```
///
/// While the owner waits the two share whatever they like. Its use is sound: the pointer is this value's own from the beginning to
/// the end.
@safe struct ThreadOrders: ~Copyable {
    /// Readable when there is an order.
    let wakeUp: WakeUp
    private let done: UnsafeMutablePointer<sem_t>

    /// No order yet.
    init() throws(SystemCallError) {
        wakeUp = try WakeUp()
        unsafe done = .allocate(capacity: 1)
        unsafe done.initialize(to: sem_t())
        // A semaphore between threads that starts at zero is always accepted.
        unsafe sem_init(done, 0, 0)
    }

    deinit {
        // The thread has ended, or never began: nobody uses the semaphore any more.
        unsafe sem_destroy(done)
        unsafe done.deallocate()
    }

    /// Gives an order and waits until it is carried out.
    func give() {
        wakeUp.signal()
        // Only a signal handler interrupts the wait, and there is none; to wait again is right in any case.
        while unsafe sem_wait(done) != 0 {}
    }

    /// Lets the owner go on.
    func carriedOut() {
        unsafe sem_post(done)
    }
}
