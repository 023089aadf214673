import ByteAccess
import CLinux
import Glibc
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct UNIXConnectionTests {
    @Test func readsInPiecesUpToItsCapacity() throws {
        let (ours, theirs) = try makePair()
        let client = FileDescriptor(adopting: theirs)
        var connection = UNIXConnection(adopting: FileDescriptor(adopting: ours), inputCapacity: 8, outputCapacity: 8)
        try expectFilling(&connection, .wouldBlock)
        try send(client, "get=1\n\nset")
        try expectFilling(&connection, .received(8))
        try expectFilling(&connection, .bufferFull)
        #expect(text(connection.unread) == "get=1\n\ns")
        connection.consume(7)
        #expect(text(connection.unread) == "s")
        try expectFilling(&connection, .received(2))
        #expect(text(connection.unread) == "set")
        connection.consume(3)
        shutdown(client.rawValue, Int32(SHUT_WR))
        try expectFilling(&connection, .endOfStream)
    }

    @Test func refusesOutputThatDoesNotFit() throws {
        let (ours, theirs) = try makePair()
        let client = FileDescriptor(adopting: theirs)
        var connection = UNIXConnection(adopting: FileDescriptor(adopting: ours), inputCapacity: 8, outputCapacity: 8)
        let first = connection.write(Array("errno".utf8).span.octets)
        let second = connection.write(Array("=0\n\n".utf8).span.octets)
        #expect(first)
        #expect(!second)
        #expect(connection.outputRoom == 3)
        #expect(connection.hasUnsentOutput == true)
        let isAllSent = try connection.flush()
        #expect(isAllSent)
        #expect(connection.hasUnsentOutput == false)
        #expect(connection.outputRoom == 8)
        var bytes = [UInt8](repeating: 0, count: 16)
        let number = client.rawValue
        let count = try systemCall("read") { unsafe read(number, &bytes, 16) }
        #expect(bytes[..<count] == Array("errno".utf8)[...])
    }

    @Test func aSlowReaderGetsEverythingInOrder() throws {
        let (ours, theirs) = try makePair()
        let client = FileDescriptor(adopting: theirs)
        var connection = UNIXConnection(
            adopting: FileDescriptor(adopting: ours), inputCapacity: 8, outputCapacity: 1 << 16)
        let number = client.rawValue
        var written = 0
        var read = 0
        var sawFullSocket = false
        var chunk = [UInt8](repeating: 0, count: 40_000)
        let total = 2 << 20
        while read < total {
            while written < total, connection.outputRoom >= 1_000 {
                let piece = (written..<written + 1_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }
                let isTaken = connection.write(piece.span.octets)
                #expect(isTaken)
                written += 1_000
            }
            if try !connection.flush() { sawFullSocket = true }
            let count = try systemCall("read") { unsafe Glibc.read(number, &chunk, chunk.count) }
            for index in 0..<count where chunk[index] != UInt8(truncatingIfNeeded: (read + index) &* 7 >> 3) {
                Issue.record("byte \(read + index) is wrong")
                return
            }
            read += count
        }
        #expect(sawFullSocket)
    }

    @Test func aClientThatLeavesIsAnErrorAndNoSignal() throws {
        let (ours, theirs) = try makePair()
        var connection = UNIXConnection(adopting: FileDescriptor(adopting: ours), inputCapacity: 8, outputCapacity: 8)
        close(theirs)
        let bytes: [UInt8] = [1, 2]
        let isTaken = connection.write(bytes.span.octets)
        #expect(isTaken)
        var failure: SystemCallError?
        do throws(SystemCallError) { _ = try connection.flush() } catch { failure = error }
        #expect(failure == SystemCallError("send(control socket)", errno: EPIPE))
        try expectFilling(&connection, .endOfStream)
    }

    private func expectFilling(
        _ connection: inout UNIXConnection, _ expected: UNIXConnection.Filling,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let filling = try connection.fill()
        #expect(filling == expected, sourceLocation: sourceLocation)
    }

    private func text(_ bytes: RawSpan) -> String { String(decoding: Array(bytes), as: UTF8.self) }

    private func send(_ descriptor: borrowing FileDescriptor, _ text: String) throws {
        let number = descriptor.rawValue
        let bytes = Array(text.utf8)
        _ = try systemCall("write") { unsafe write(number, bytes, bytes.count) }
    }

    /// Two ends of a stream: a non-blocking one, as accepted ones are, and a plain one.
    private func makePair() throws -> (Int32, Int32) {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("socketpair") {
            unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends)
        }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        return (ends[0], ends[1])
    }
}
