internal import CLinux
internal import Glibc
internal import Provider

/// The two clocks that cores are given, and two more.
enum HostClock {
    /// The time since boot, sleep included (`CLOCK_BOOTTIME`): what deadlines and ages are measured on.
    @inline(__always)
    static func now() -> Instant {
        let time = read(CLOCK_BOOTTIME)
        return Instant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// The time since boot without sleep (`CLOCK_MONOTONIC`): only to notice sleep by.
    static func monotonic() -> Instant {
        let time = read(CLOCK_MONOTONIC)
        return Instant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// The time of day (`CLOCK_REALTIME`). A clock set before 1970 reads as the epoch.
    static func wallClock() -> WallClockTime {
        let time = read(CLOCK_REALTIME)
        if time.tv_sec < 0 { return WallClockTime(seconds: 0, nanoseconds: 0) }
        return WallClockTime(seconds: UInt64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
    }

    /// How long processors have worked for the process (`CLOCK_PROCESS_CPUTIME_ID`).
    static func processorTime() -> Interval {
        let time = read(CLOCK_PROCESS_CPUTIME_ID)
        return Interval(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    @inline(__always)
    private static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        // The pointer lives for the call. These clocks exist on every kernel since 2.6.39, so the call cannot fail.
        let result = unsafe clock_gettime(clock, &time)
        precondition(result == 0, "a clock of the kernel is missing")
        return time
    }
}
