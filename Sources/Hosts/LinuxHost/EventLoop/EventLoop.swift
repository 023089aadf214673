internal import CLinux
internal import Glibc
internal import Provider

/// Waits for descriptors and for a deadline on the boot clock: epoll, with a timerfd for the deadline because epoll's
/// own timeout stands still while the machine sleeps and would fire that much too late after it.
///
/// A descriptor of which a duplicate stays open elsewhere must be unregistered before it is closed: epoll watches the
/// open file description, not the number.
struct EventLoop: ~Copyable {
    /// The token that the deadline's timer is registered under, and that no other descriptor may use.
    private static let timerToken = UInt64.max

    private let epoll: FileDescriptor
    private let timer: FileDescriptor
    /// When the timer fires; nil once it has. It may be earlier than the deadline (then the wait goes on), never later.
    private var armed: Instant?

    /// A loop that watches nothing yet.
    init() throws(SystemCallError) {
        let epoll = FileDescriptor(
            adopting: try systemCall("epoll_create1") { epoll_create1(Int32(EPOLL_CLOEXEC)) })
        let timer = FileDescriptor(
            adopting: try systemCall("timerfd_create") {
                timerfd_create(CLOCK_BOOTTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
            })
        try Self.control(
            "epoll_ctl(EPOLL_CTL_ADD)", epoll, EPOLL_CTL_ADD, timer.rawValue, token: Self.timerToken,
            interest: .readable, trigger: .edge)
        self.epoll = epoll
        self.timer = timer
    }

    /// Starts watching a descriptor. Its events carry `token`.
    func register(
        _ descriptor: borrowing FileDescriptor, token: UInt64, interest: EventInterest, trigger: EventTrigger = .level
    ) throws(SystemCallError) {
        try Self.control(
            "epoll_ctl(EPOLL_CTL_ADD)", epoll, EPOLL_CTL_ADD, descriptor.rawValue, token: token, interest: interest,
            trigger: trigger)
    }

    /// Changes what a registered descriptor is watched for, and its token.
    func modify(
        _ descriptor: borrowing FileDescriptor, token: UInt64, interest: EventInterest, trigger: EventTrigger = .level
    ) throws(SystemCallError) {
        try Self.control(
            "epoll_ctl(EPOLL_CTL_MOD)", epoll, EPOLL_CTL_MOD, descriptor.rawValue, token: token, interest: interest,
            trigger: trigger)
    }

    /// Stops watching a descriptor.
    func unregister(_ descriptor: borrowing FileDescriptor) throws(SystemCallError) {
        try Self.control(
            "epoll_ctl(EPOLL_CTL_DEL)", epoll, EPOLL_CTL_DEL, descriptor.rawValue, token: 0, interest: [],
            trigger: .level)
    }

    /// Waits until a descriptor is ready or the deadline has come, whichever is first; without a deadline for as long
    /// as it takes. Afterwards `events` holds what is ready; when it is empty, the deadline is due.
    mutating func wait(until deadline: Instant?, into events: inout EventBuffer) throws(SystemCallError) {
        while true {
            events.count = 0
            var timeout: Int32 = -1
            if let deadline {
                if deadline <= HostClock.now() {
                    timeout = 0
                } else if armed.map({ deadline < $0 }) ?? true {
                    try arm(deadline)
                }
            }
            // The buffer has room for `capacity` events.
            let count = unsafe epoll_wait(epoll.rawValue, events.storage, Int32(events.capacity), timeout)
            if count < 0 {
                let error = errno
                if error == EINTR { continue }
                throw SystemCallError("epoll_wait", errno: error)
            }
            events.count = Int(count)
            removeTimer(from: &events)
            if events.count > 0 || timeout == 0 { return }
            if let deadline, deadline <= HostClock.now() { return }
        }
    }

    /// Takes the timer's own event out of the list.
    private mutating func removeTimer(from events: inout EventBuffer) {
        for index in 0..<events.count where events[index].token == Self.timerToken {
            armed = nil
            events.remove(at: index)
            return
        }
    }

    private mutating func arm(_ deadline: Instant) throws(SystemCallError) {
        var setting = itimerspec()
        setting.it_value.tv_sec = Int(deadline.nanoseconds / 1_000_000_000)
        setting.it_value.tv_nsec = Int(deadline.nanoseconds % 1_000_000_000)
        let number = timer.rawValue
        _ = try systemCall("timerfd_settime") {
            // The pointer lives for the call; the old setting is not asked for.
            unsafe timerfd_settime(number, Int32(TFD_TIMER_ABSTIME), &setting, nil)
        }
        armed = deadline
    }

    private static func control(
        _ operation: StaticString, _ epoll: borrowing FileDescriptor, _ request: Int32, _ number: Int32, token: UInt64,
        interest: EventInterest, trigger: EventTrigger
    ) throws(SystemCallError) {
        var conditions: UInt32 = 0
        if interest.contains(.readable) { conditions |= EPOLLIN.rawValue | EPOLLRDHUP.rawValue }
        if interest.contains(.writable) { conditions |= EPOLLOUT.rawValue }
        if trigger == .edge { conditions |= EPOLLET.rawValue }
        // The union's 64-bit member covers all of it.
        var event = unsafe epoll_event(events: conditions, data: epoll_data_t(u64: token))
        let epollNumber = epoll.rawValue
        _ = try systemCall(operation) {
            // The pointer lives for the call.
            unsafe epoll_ctl(epollNumber, request, number, &event)
        }
    }
}
