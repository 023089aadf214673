import CLinux
import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct LogTests {
    @Test func privateValuesDoNotPrint() {
        let error = SystemCallError("bind", errno: EPERM)
        let message: LogMessage = "peer \(7) at \(private: address("192.0.2.1")) is \(public: "gone"): \(error)"
        #expect(message.text == "peer 7 at <private> is gone: bind: Operation not permitted (EPERM)")
    }

    @Test(arguments: [(false, "ERROR: (wg0) at <private>\n"), (true, "ERROR: (wg0) at 192.0.2.1\n")])
    func oneSwitchShowsPrivateValues(showPrivate: Bool, expected: String) throws {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe2") { unsafe clinux_pipe2(&ends, O_CLOEXEC) }
        defer { close(ends[0]) }
        let log = Log(
            level: .error, name: "wg0", privacy: LogPrivacy(showPrivate: showPrivate), descriptorNumber: ends[1])
        log.error("at \(private: address("192.0.2.1"))")
        close(ends[1])
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = try systemCall("read") { unsafe read(ends[0], &bytes, 256) }
        #expect(String(decoding: bytes[..<count], as: UTF8.self) == expected)
    }

    @Test(arguments: [
        (LogLevel.silent, ""), (.error, "ERROR: (wg0) e\n"), (.verbose, "ERROR: (wg0) e\nDEBUG: (wg0) v 1\n"),
    ])
    func writesWhatTheLevelAsksFor(level: LogLevel, expected: String) throws {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe2") { unsafe clinux_pipe2(&ends, O_CLOEXEC) }
        defer { close(ends[0]) }
        let log = Log(level: level, name: "wg0", descriptorNumber: ends[1])
        log.error("e")
        log.verbose("v \(1)")
        close(ends[1])
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = try systemCall("read") { unsafe read(ends[0], &bytes, 256) }
        #expect(String(decoding: bytes[..<count], as: UTF8.self) == expected)
    }

    @Test func levelsHaveTheNamesOfTheirVariable() {
        #expect(LogLevel(named: "silent") == .silent)
        #expect(LogLevel(named: "error") == .error)
        #expect(LogLevel(named: "verbose") == .verbose)
        #expect(LogLevel(named: "debug") == .verbose)
        #expect(LogLevel(named: "info") == .info)
        #expect(LogLevel(named: "loud") == nil)
    }
}
