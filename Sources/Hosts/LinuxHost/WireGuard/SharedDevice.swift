internal import Glibc
internal import OpenSSLCrypto
internal import WireGuard

/// The WireGuard device of an interface, which its workers use one at a time. Sealing and opening need no device and are done
/// outside of the lock.
///
/// Sharing it is sound: the device is reached only between `lock()` and `unlock()`.
@safe final class SharedDevice: @unchecked Sendable {
    /// The device. Only for who holds the lock.
    var device: Device<OpenSSLCryptography>
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    init(_ device: consuming Device<OpenSSLCryptography>) {
        self.device = device
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

    /// Waits for the device.
    @inline(__always)
    func lock() {
        // Initialized as long as the object lives.
        unsafe pthread_mutex_lock(mutex)
    }

    /// Gives the device back.
    @inline(__always)
    func unlock() {
        // As above; the caller holds it.
        unsafe pthread_mutex_unlock(mutex)
    }
}
