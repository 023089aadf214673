import DNSProxy
import Glibc
import Provider
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct HostFilesTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func time(_ looks: UInt64) -> Instant {
        Instant(nanoseconds: start.nanoseconds + looks * HostFiles.interval.nanoseconds)
    }

    /// The number of addresses when a look finds the files changed.
    private func changed(_ finding: HostFiles.Finding) -> Int? {
        if case .changed(let names) = finding { names.counts.addresses } else { nil }
    }

    @Test func filesAreReadAgainOnceTheyHaveChangedAndStayedSo() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/hosts"
            try writeFile("192.0.2.1 a.example\n", to: path, mode: 0o644)
            var files = try HostFiles(reading: [path], at: start)
            #expect(files.names.counts.addresses == 1 && files.nextDeadline == time(1))
            #expect(changed(files.look(at: time(1))) == nil && files.nextDeadline == time(2))
            try writeFile("192.0.2.1 a.example\n192.0.2.2 b.example\n", to: path, mode: 0o644)
            #expect(changed(files.look(at: time(2))) == nil)
            // Somebody is still writing.
            try writeFile("192.0.2.1 a.example\n192.0.2.2 b.example\n192.0.2.3 c.example\n", to: path, mode: 0o644)
            #expect(changed(files.look(at: time(3))) == nil)
            #expect(changed(files.look(at: time(4))) == 3)
            #expect(changed(files.look(at: time(5))) == nil)
        }
    }

    @Test func aFileThatTookTheNameOfAnotherIsAChange() throws {
        try inTemporaryFolder { folder in
            let (path, other) = ("\(folder)/hosts", "\(folder)/other")
            try writeFile("192.0.2.1 a.example\n", to: path, mode: 0o644)
            try writeFile("192.0.2.2 b.example b\n", to: other, mode: 0o644)
            var files = try HostFiles(reading: [path, other], at: start)
            #expect(files.names.counts.addresses == 3)
            #expect(unsafe rename(other, path) == 0)
            try writeFile("", to: other, mode: 0o644)
            #expect(changed(files.look(at: time(1))) == nil)
            #expect(changed(files.look(at: time(2))) == 2)
        }
    }

    @Test func whatCannotBeReadIsSaidOnceAndChangesNothing() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/hosts"
            try writeFile("192.0.2.1 a.example\n", to: path, mode: 0o644)
            var files = try HostFiles(reading: [path], at: start)
            #expect(unsafe unlink(path) == 0)
            _ = files.look(at: time(1))
            guard case .unreadable(let error) = files.look(at: time(2)) else {
                Issue.record("a file that is gone is read")
                return
            }
            #expect("\(error)" == "\(path) cannot be read: No such file or directory")
            if case .nothing = files.look(at: time(3)) {} else { Issue.record("it is said twice") }
            #expect(files.names.counts.addresses == 1)
            try writeFile("192.0.2.1 a.example a\n", to: path, mode: 0o644)
            _ = files.look(at: time(4))
            #expect(changed(files.look(at: time(5))) == 2)
        }
    }

    @Test func withoutFilesNothingIsLookedAt() throws {
        var files = try HostFiles(reading: [], at: start)
        #expect(files.nextDeadline == nil)
        if case .nothing = files.look(at: time(1)) {} else { Issue.record("there is nothing to look at") }
        #expect(throws: HostFileError.self) { try HostFiles(reading: ["/nowhere/hosts"], at: start) }
    }
}
