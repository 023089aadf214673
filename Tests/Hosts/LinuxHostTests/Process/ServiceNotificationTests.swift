import CLinux
import Glibc
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct ServiceNotificationTests {
    /// A supervisor's socket: at a path, or for a name with `@` in front without a file.
    private func listen(_ name: String) throws -> FileDescriptor {
        let socket = FileDescriptor(
            adopting: try systemCall("socket") { Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0) })
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var text = Array(name.utf8)
        if text.first == UInt8(ascii: "@") { text[0] = 0 }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: text) }
        let length = socklen_t(2 + text.count + (text.first == 0 ? 0 : 1))
        let number = socket.rawValue
        _ = try systemCall("bind") {
            unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(number, $0, length) }
            }
        }
        return socket
    }

    private func receive(_ socket: borrowing FileDescriptor) throws -> String {
        try awaitReady(socket.rawValue, "a notification")
        var bytes = [UInt8](repeating: 0, count: 256)
        let number = socket.rawValue
        let count = try systemCall("recv") { unsafe recv(number, &bytes, bytes.count, 0) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    @Test func reachesASocketAtAPath() throws {
        try inTemporaryFolder { folder in
            let socket = try listen("\(folder)/notify")
            ServiceNotification.ready.send(to: "\(folder)/notify")
            ServiceNotification.stopping.send(to: "\(folder)/notify")
            #expect(try receive(socket) == "READY=1")
            #expect(try receive(socket) == "STOPPING=1")
        }
    }

    @Test func reachesASocketWithoutAFile() throws {
        // The name is exactly as long as the address says: with zero bytes at its end it would be another.
        let name = "@sluice-test-\(getpid())"
        let socket = try listen(name)
        ServiceNotification.ready.send(to: name)
        #expect(try receive(socket) == "READY=1")
    }

    @Test func whatIsNoAddressOrNobodysIsPassedOver() throws {
        for name in ["", "@", "notify", "vsock:2:1", "/nonexistent/notify", "/" + String(repeating: "x", count: 200)] {
            ServiceNotification.ready.send(to: name)
        }
    }
}
