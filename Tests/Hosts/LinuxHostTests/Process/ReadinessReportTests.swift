import CLinux
import Glibc
import Testing

@testable import LinuxHost

/// One after the other: they change the environment, which the process has only one of.
@Suite(.serialized) struct ReadinessReportTests {
    @Test func aProcessThatNobodyWaitsForOwesNone() {
        let isNone = ReadinessReport.fromEnvironment() == nil
        #expect(isNone)
        for value in ["", "x", "-1", "0", "2", "99999"] {
            unsafe setenv(ReadinessReport.environmentVariable, value, 1)
            let isNone = ReadinessReport.fromEnvironment() == nil
            #expect(isNone)
        }
        unsafe unsetenv(ReadinessReport.environmentVariable)
    }

    @Test func saysReadyAndHidesFromChildren() throws {
        let (readEnd, writeEnd) = try makePipe()
        unsafe setenv(ReadinessReport.environmentVariable, "\(writeEnd)", 1)
        if let report = ReadinessReport.fromEnvironment() {
            #expect(unsafe getenv(ReadinessReport.environmentVariable) == nil)
            #expect(fcntl(writeEnd, F_GETFD) & FD_CLOEXEC != 0)
            report.ready()
        } else {
            Issue.record("no report")
        }
        // The end comes after the byte: the report is the pipe's only owner.
        #expect(try readAll(readEnd) == "R")
    }

    @Test func saysWhyItFailed() throws {
        let (readEnd, writeEnd) = try makePipe()
        unsafe setenv(ReadinessReport.environmentVariable, "\(writeEnd)", 1)
        if let report = ReadinessReport.fromEnvironment() { report.failed("no device") }
        #expect(try readAll(readEnd) == "Fno device")
    }

    private func makePipe() throws -> (Int32, Int32) {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe2") { unsafe clinux_pipe2(&ends, 0) }
        return (ends[0], ends[1])
    }

    private func readAll(_ number: Int32) throws -> String {
        defer { close(number) }
        var text = ""
        var bytes = [UInt8](repeating: 0, count: 64)
        while true {
            let count = try systemCall("read") { unsafe read(number, &bytes, 64) }
            if count == 0 { return text }
            text += String(decoding: bytes[..<count], as: UTF8.self)
        }
    }
}
