import Glibc
import Provider
import Testing

@testable import LinuxHost

@Suite struct HostClockTests {
    @Test func countsFromBootAndNeverStepsBack() throws {
        let number = try systemCall("open") { unsafe open("/proc/uptime", O_RDONLY) }
        defer { close(number) }
        var text = [UInt8](repeating: 0, count: 64)
        let before = HostClock.now()
        let count = try systemCall("read") { unsafe read(number, &text, 64) }
        let after = HostClock.now()
        #expect(before <= after)
        // The kernel prints its boot clock with two decimals, rounded down.
        let fields = String(decoding: text[..<count], as: UTF8.self).split(separator: " ")
        let uptime = try #require(Double(fields[0]))
        #expect(Double(before.nanoseconds) / 1e9 - 0.011 <= uptime)
        #expect(uptime <= Double(after.nanoseconds) / 1e9)
    }

    @Test func tellsTheTimeOfDay() {
        let before = time(nil)
        let now = HostClock.wallClock()
        let after = time(nil)
        // time() may lag behind by a timer tick.
        #expect(UInt64(before) <= now.seconds && now.seconds <= UInt64(after) + 1)
        #expect(now.nanoseconds < 1_000_000_000)
    }
}
