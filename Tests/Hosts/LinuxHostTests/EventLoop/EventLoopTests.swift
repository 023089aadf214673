import CLinux
import Glibc
import Provider
import Testing

@testable import LinuxHost

@Suite struct EventLoopTests {
    @Test func aDeadlineIsDueWhenAnEmptyWaitReturns() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        // Down to single nanoseconds, and deadlines that move both ways, so that an earlier setting of the timer
        // stands.
        for nanoseconds: UInt64 in [1, 999, 1_000, 123_457, 999_999, 1_000_001, 20_000_000, 3, 5_000_003] {
            let deadline = HostClock.now() + Interval(nanoseconds: nanoseconds)
            try loop.wait(until: deadline, into: &events)
            #expect(events.count == 0)
            #expect(HostClock.now() >= deadline)
        }
    }

    @Test func anEarlierDeadlineReplacesALaterOne() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        let wakeUp = try WakeUp()
        try loop.register(wakeUp.descriptor, token: 1, interest: .readable)
        wakeUp.signal()
        try loop.wait(until: HostClock.now() + .seconds(3_600), into: &events)
        #expect(events.count == 1)
        #expect(wakeUp.clear() == true)
        let start = HostClock.now()
        try loop.wait(until: start + .milliseconds(5), into: &events)
        #expect(events.count == 0)
        #expect(HostClock.now().since(start) < patience)
    }

    @Test func aLaterDeadlineIsNotCutShortByAnEarlierSetting() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        let wakeUp = try WakeUp()
        try loop.register(wakeUp.descriptor, token: 1, interest: .readable)
        wakeUp.signal()
        let start = HostClock.now()
        try loop.wait(until: start + .milliseconds(30), into: &events)
        #expect(wakeUp.clear() == true)
        let later = start + .milliseconds(60)
        try loop.wait(until: later, into: &events)
        #expect(events.count == 0)
        #expect(HostClock.now() >= later)
    }

    @Test func aPastDeadlineOnlyLooks() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 0)
        let wakeUp = try WakeUp()
        try loop.register(wakeUp.descriptor, token: 9, interest: .readable)
        wakeUp.signal()
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 1)
        #expect(events[0] == Event(token: 9, readiness: .readable))
    }

    @Test func anotherThreadEndsAWaitWithoutDeadline() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        let wakeUp = try WakeUp()
        try loop.register(wakeUp.descriptor, token: 0xFFFF_FFFF_FFFF_FFFE, interest: .readable)
        let second = try wakeUp.descriptor.duplicate().release()
        var thread = pthread_t()
        let context = unsafe UnsafeMutableRawPointer(bitPattern: Int(second))
        let result = unsafe pthread_create(
            &thread, nil,
            { context in
                let number = Int32(Int(bitPattern: context))
                _ = eventfd_write(number, 1)
                close(number)
                return nil
            }, context)
        #expect(result == 0)
        try loop.wait(until: nil, into: &events)
        pthread_join(thread, nil)
        #expect(events.count == 1)
        #expect(events[0].token == 0xFFFF_FFFF_FFFF_FFFE)
        #expect(wakeUp.clear() == true)
        #expect(wakeUp.clear() == false)
    }

    @Test func levelRepeatsAndEdgeDoesNot() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        let level = try WakeUp()
        let edge = try WakeUp()
        try loop.register(level.descriptor, token: 1, interest: .readable, trigger: .level)
        try loop.register(edge.descriptor, token: 2, interest: .readable, trigger: .edge)
        level.signal()
        edge.signal()
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 2)
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 1)
        #expect(events[0].token == 1)
        edge.signal()
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 2)
    }

    @Test func modifiesAndForgetsDescriptors() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        let wakeUp = try WakeUp()
        // An eventfd is writable at once.
        try loop.register(wakeUp.descriptor, token: 1, interest: [])
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 0)
        try loop.modify(wakeUp.descriptor, token: 2, interest: [.readable, .writable])
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 1)
        #expect(events[0] == Event(token: 2, readiness: .writable))
        try loop.unregister(wakeUp.descriptor)
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 0)
        #expect(throws: SystemCallError("epoll_ctl(EPOLL_CTL_DEL)", errno: ENOENT)) {
            try loop.unregister(wakeUp.descriptor)
        }
    }

    @Test func reportsAHangUp() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe2") { unsafe clinux_pipe2(&ends, O_CLOEXEC) }
        let readEnd = FileDescriptor(adopting: ends[0])
        try loop.register(readEnd, token: 1, interest: .readable)
        close(ends[1])
        try loop.wait(until: nil, into: &events)
        #expect(events.count == 1)
        #expect(events[0].readiness.contains(.hangUp))
    }

    @Test func aSmallBufferMissesNothing() throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 1)
        let first = try WakeUp()
        let second = try WakeUp()
        try loop.register(first.descriptor, token: 1, interest: .readable)
        try loop.register(second.descriptor, token: 2, interest: .readable)
        first.signal()
        second.signal()
        var seen: Set<UInt64> = []
        for _ in 0..<2 {
            try loop.wait(until: HostClock.now() + patience, into: &events)
            #expect(events.count == 1)
            seen.insert(events[0].token)
            _ = events[0].token == 1 ? first.clear() : second.clear()
        }
        #expect(seen == [1, 2])
    }

    @Test func signalsAreReadAndDoNotInterrupt() throws {
        // Blocking them again does no harm; the mask is put back for the tests that run on this thread later.
        var before = sigset_t()
        unsafe pthread_sigmask(SIG_SETMASK, nil, &before)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        let signals = try SignalDescriptor([.hangUp, .terminate])
        try loop.register(signals.descriptor, token: 5, interest: .readable)
        #expect(try signals.next() == nil)
        pthread_kill(pthread_self(), SIGTERM)
        pthread_kill(pthread_self(), SIGHUP)
        try loop.wait(until: HostClock.now() + patience, into: &events)
        #expect(events.count == 1)
        // Lower numbers come first.
        #expect(try signals.next() == .hangUp)
        #expect(try signals.next() == .terminate)
        #expect(try signals.next() == nil)
    }
}
