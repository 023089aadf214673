internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

/// The WireGuard device of an interface, which its workers use one at a time. Sealing and opening need no device and are done
/// outside of the lock.
///
/// The first worker does what the device has to do by itself: handshakes, timers, answers. While it sleeps, another worker whose
/// packets gave the device something to do wakes it.
///
/// Sharing it is sound: the device and the alarm are reached only between `lock()` and `unlock()`.
@safe final class SharedDevice: @unchecked Sendable {
    /// The device. Only for who holds the lock.
    var device: Device<OpenSSLCryptography>
    /// Readable when the first worker is to look at the device.
    let wakeUp: WakeUp
    /// When the first worker will look at the device by itself; nil while it is awake or was woken already.
    private var alarm: Instant?
    private let mutex = ThreadLock()

    init(_ device: consuming Device<OpenSSLCryptography>) throws(SystemCallError) {
        wakeUp = try WakeUp()
        self.device = device
    }

    /// Waits for the device.
    @inline(__always)
    func lock() { mutex.lock() }

    /// Gives the device back.
    @inline(__always)
    func unlock() { mutex.unlock() }

    /// Until when the first worker may sleep; nil for as long as nobody wakes it. A time that has come means that there is
    /// something to do at once.
    func deadlineBeforeSleep() -> Instant? {
        lock()
        defer { unlock() }
        if device.hasWork {
            alarm = nil
            return HostClock.now()
        }
        let deadline = device.nextDeadline()
        alarm = deadline ?? Instant(nanoseconds: .max)
        return deadline
    }

    /// Says that the first worker is awake and will look at the device before it sleeps again.
    func noteAwake() {
        lock()
        alarm = nil
        unlock()
    }

    /// Wakes the first worker if the device has to do something earlier than it was going to look.
    func wakeIfNeeded() {
        lock()
        defer { unlock() }
        guard let alarm else { return }
        guard device.hasWork || device.nextDeadline().map({ $0 < alarm }) ?? false else { return }
        self.alarm = nil
        wakeUp.signal()
    }
}
