import Glibc
import Testing

@testable import LinuxHost

@Suite struct FileDescriptorTests {
    @Test func closesItsDescriptionWhenItGoesAway() throws {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe") { unsafe pipe(&ends) }
        let readEnd = FileDescriptor(adopting: ends[0])
        do {
            let writeEnd = FileDescriptor(adopting: ends[1])
            let second = try writeEnd.duplicate()
            #expect(second.rawValue != writeEnd.rawValue)
            #expect(fcntl(second.rawValue, F_GETFD) == FD_CLOEXEC)
        }
        // The end of file comes only when both write ends are closed.
        var byte: UInt8 = 0
        #expect(unsafe read(readEnd.rawValue, &byte, 1) == 0)
    }

    @Test func doesNotCloseWhatItReleased() throws {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe") { unsafe pipe(&ends) }
        let number = FileDescriptor(adopting: ends[0]).release()
        #expect(fcntl(number, F_GETFD) >= 0)
        close(ends[0])
        close(ends[1])
    }

    @Test func describesASystemCallErrorByOperationMessageAndName() {
        let error = SystemCallError("open(/dev/net/tun)", errno: EPERM)
        #expect(error.description == "open(/dev/net/tun): Operation not permitted (EPERM)")
        #expect(SystemCallError("read", errno: 9_999).description == "read: error 9999")
    }

    @Test func retriesAnInterruptedCallAndThrowsAnyOtherError() throws {
        var attempts = 0
        let result = try systemCall("test") { () -> Int32 in
            attempts += 1
            if attempts == 3 { return 7 }
            errno = EINTR
            return -1
        }
        #expect(result == 7)
        #expect(throws: SystemCallError("test", errno: EBADF)) {
            _ = try systemCall("test") { () -> Int32 in
                errno = EBADF
                return -1
            }
        }
    }
}
