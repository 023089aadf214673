import ByteAccess
import CLinux
import Glibc
import IPPacket
import WireGuard

@testable import LinuxHost

/// A socket of a server on this machine that a test speaks for.
struct LoopbackServer: ~Copyable {
    let descriptor: FileDescriptor
    let port: UInt16

    /// A socket at an address, on a port that nobody used unless one is said. TCP listens.
    init(_ type: __socket_type, _ host: String = "127.0.0.1", port: UInt16 = 0) throws {
        let host = address(host)
        let family = AddressFamily(of: host).socketFamily
        let descriptor = FileDescriptor(
            adopting: try systemCall("socket") {
                socket(family, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            })
        let number = descriptor.rawValue
        try unsafe Self.withAddress(Endpoint(address: host, port: port)) { pointer, length in
            _ = try systemCall("bind") { unsafe bind(number, pointer, length) }
        }
        if type == SOCK_STREAM { _ = try systemCall("listen") { listen(number, 16) } }
        let port = try unsafe Self.readAddress("getsockname") { unsafe getsockname(number, $0, $1) }.0.port
        self.descriptor = descriptor
        self.port = port
    }

    /// The next datagram, waited for, and who sent it.
    func receive() throws -> (bytes: [UInt8], sender: Endpoint) {
        try awaitReady(descriptor.rawValue, "a datagram")
        let number = descriptor.rawValue
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let (sender, count) = try unsafe Self.readAddress("recvfrom") { pointer, length in
            Int32(unsafe recvfrom(number, &buffer, buffer.count, 0, pointer, length))
        }
        return (Array(buffer[..<Int(count)]), sender)
    }

    /// Sends a datagram.
    func send(_ bytes: [UInt8], to receiver: Endpoint) throws {
        let number = descriptor.rawValue
        try unsafe Self.withAddress(receiver) { pointer, length in
            _ = try systemCall("sendto") { unsafe sendto(number, bytes, bytes.count, 0, pointer, length) }
        }
    }

    /// The next connection, waited for.
    func accept() throws -> LoopbackConnection {
        try awaitReady(descriptor.rawValue, "a connection")
        let number = descriptor.rawValue
        return LoopbackConnection(
            descriptor: FileDescriptor(adopting: try systemCall("accept") { Glibc.accept(number, nil, nil) }))
    }

    private static func withAddress(
        _ endpoint: Endpoint, _ body: (UnsafePointer<sockaddr>?, socklen_t) throws -> Void
    ) throws {
        var bytes = [UInt8](repeating: 0, count: SocketAddress.capacity)
        let length: Int
        do {
            var span = bytes.mutableSpan
            var octets = span.mutableOctets
            length = SocketAddress.write(endpoint, to: &octets)
        }
        try unsafe bytes.withUnsafeBytes {
            unsafe try body($0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(length))
        }
    }

    private static func readAddress(
        _ operation: StaticString, _ call: (UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>) -> Int32
    ) throws -> (Endpoint, Int32) {
        var bytes = [UInt8](repeating: 0, count: SocketAddress.capacity)
        var length = socklen_t(bytes.count)
        let result = try unsafe bytes.withUnsafeMutableBytes { bytes in
            let pointer = unsafe bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
            return try systemCall(operation) { unsafe call(pointer, &length) }
        }
        guard let endpoint = SocketAddress.read(bytes.span.octets.extracting(..<Int(length))) else {
            throw Impatience(awaited: "an address")
        }
        return (endpoint, result)
    }
}

/// The server's end of a TCP connection.
struct LoopbackConnection: ~Copyable {
    let descriptor: FileDescriptor

    /// What has come so far; nil at the end of the stream.
    func readSome() throws -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(descriptor.rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 { return Array(buffer[..<count]) }
        return count == 0 || errno != EAGAIN ? nil : []
    }

    /// Sends bytes, all at once.
    func write(_ bytes: [UInt8]) throws {
        _ = try systemCall("send") {
            unsafe send(descriptor.rawValue, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
    }
}

/// Messages with their lengths in front, taken apart.
func framedMessages(in bytes: [UInt8]) -> [[UInt8]] {
    var (messages, offset) = ([[UInt8]](), 0)
    while offset + 2 <= bytes.count {
        let length = Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
        guard offset + 2 + length <= bytes.count else { break }
        messages.append(Array(bytes[offset + 2..<offset + 2 + length]))
        offset += 2 + length
    }
    return messages
}

/// A message with its length in front.
func framed(_ message: [UInt8]) -> [UInt8] {
    [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message
}
