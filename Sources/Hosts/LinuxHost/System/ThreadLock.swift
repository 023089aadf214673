internal import Glibc

/// A lock that threads take for a moment, one at a time. What it protects lies beside it.
///
/// It has no closure to call: who takes packets in its turn takes the lock once for all of them, in one function, and gives it back in
/// another.
///
/// Its use is sound: the pointer is this value's own from the beginning to the end.
@safe struct ThreadLock: ~Copyable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    /// A lock that nobody has.
    init() {
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        // The default attributes are always accepted.
        unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        // Nobody can reach it any more, so nobody has it.
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Waits until nobody has the lock, and takes it.
    @inline(__always)
    func lock() {
        // Initialized as long as the owner lives.
        unsafe pthread_mutex_lock(mutex)
    }

    /// Gives the lock back.
    @inline(__always)
    func unlock() {
        // As above; the caller has it.
        unsafe pthread_mutex_unlock(mutex)
    }
}
