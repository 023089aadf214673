import ByteAccess
import CLinux
import Glibc
import IPPacket
import Provider
import WireGuard

@testable import LinuxHost

/// A client's own socket, by UDP or TCP. It waits for nothing: what a test waits for, the rig serves meanwhile.
struct ClientSocket: ~Copyable {
    let descriptor: FileDescriptor
    /// What came by TCP and is no whole message yet.
    private var stream: [UInt8] = []

    /// A socket for datagrams, which takes them from anybody.
    init(datagramsFrom source: String = "127.0.0.1") throws {
        let descriptor = try Self.open(SOCK_DGRAM, source)
        try unsafe Self.call(descriptor, Endpoint(address: address(source), port: 0), "bind") {
            unsafe bind($0, $1, $2)
        }
        self.descriptor = descriptor
    }

    /// A connection. It is there at once: the kernel makes it before anybody accepts it.
    init(connectedTo target: String = ClientRig.address, from source: String? = nil, receiveBuffer: Int32? = nil) throws
    {
        guard let target = AddressAndPort(parsing: target) else { throw Impatience(awaited: "an address") }
        let descriptor = try Self.open(SOCK_STREAM, "\(target.address)")
        try descriptor.set(.undelayed, to: 1)
        if let receiveBuffer { try descriptor.set(.receiveBuffer, to: receiveBuffer) }
        if let source {
            try unsafe Self.call(descriptor, Endpoint(address: address(source), port: 0), "bind") {
                unsafe bind($0, $1, $2)
            }
        }
        try unsafe Self.call(descriptor, Endpoint(address: target.address, port: target.port), "connect") {
            unsafe connect($0, $1, $2)
        }
        try descriptor.setNonBlocking()
        self.descriptor = descriptor
    }

    private static func open(_ type: __socket_type, _ text: String) throws -> FileDescriptor {
        let family = AddressFamily(of: address(text)).socketFamily
        let type = Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        return FileDescriptor(adopting: try systemCall("socket") { socket(family, type, 0) })
    }

    /// Makes a call that takes an address; the pointer lives for it.
    private static func call(
        _ descriptor: borrowing FileDescriptor, _ endpoint: Endpoint, _ name: StaticString,
        _ body: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32
    ) throws {
        var bytes = [UInt8](repeating: 0, count: SocketAddress.capacity)
        var span = bytes.mutableSpan
        var octets = span.mutableOctets
        let length = socklen_t(SocketAddress.write(endpoint, to: &octets))
        let number = descriptor.rawValue
        _ = try systemCall(name) {
            unsafe bytes.withUnsafeBytes {
                unsafe body(number, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), length)
            }
        }
    }

    // MARK: Datagrams

    /// Sends a datagram.
    func send(_ message: [UInt8], to target: String = ClientRig.address) throws {
        guard let target = AddressAndPort(parsing: target) else { throw Impatience(awaited: "an address") }
        // The array lives for the call.
        try unsafe Self.call(descriptor, Endpoint(address: target.address, port: target.port), "sendto") {
            number, address, length in
            Int32(unsafe sendto(number, message, message.count, 0, address, length))
        }
    }

    /// The next datagram and who sent it; nil when there is none.
    func receive() throws -> (message: [UInt8], from: Endpoint)? {
        var message = [UInt8](repeating: 0, count: 65_536)
        var sender = [UInt8](repeating: 0, count: SocketAddress.capacity)
        var length = socklen_t(SocketAddress.capacity)
        let number = descriptor.rawValue
        let count = unsafe sender.withUnsafeMutableBytes { sender in
            unsafe recvfrom(
                number, &message, message.count, Int32(MSG_DONTWAIT),
                sender.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
        }
        if count < 0, errno == EAGAIN { return nil }
        guard count >= 0, let from = SocketAddress.read(sender.span.octets) else {
            throw SystemCallError("recvfrom", errno: errno)
        }
        return (Array(message[..<count]), from)
    }

    // MARK: Streams

    /// Sends bytes of the stream, as far as the connection takes them now; returns how many that was.
    @discardableResult
    func write(_ bytes: [UInt8]) throws -> Int {
        let number = descriptor.rawValue
        let count = unsafe Glibc.send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN { return 0 }
        return try systemCall("send") { count }
    }

    /// What a connection has for its reader.
    enum Next: Equatable {
        case message([UInt8])
        case nothing
        case end
        case reset
    }

    /// The next message; whatever the connection has instead.
    mutating func next() -> Next {
        while true {
            if stream.count >= 2 {
                let length = Int(stream[0]) << 8 | Int(stream[1])
                if stream.count >= 2 + length {
                    defer { stream.removeFirst(2 + length) }
                    return .message(Array(stream[2..<2 + length]))
                }
            }
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = unsafe recv(descriptor.rawValue, &piece, piece.count, Int32(MSG_DONTWAIT))
            if count > 0 {
                stream += piece[..<count]
            } else if count == 0 {
                return .end
            } else if errno == EAGAIN {
                return .nothing
            } else {
                return .reset
            }
        }
    }

    /// Says that nothing more will be sent.
    func finish() { shutdown(descriptor.rawValue, Int32(SHUT_WR)) }

    /// Has the other end told that the connection broke, when this one is closed.
    func breakWhenClosed() {
        var setting = linger(l_onoff: 1, l_linger: 0)
        // The pointer lives for the call and the length is the structure's.
        unsafe setsockopt(
            descriptor.rawValue, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
    }

    /// Closes the connection so that the other end is told that it broke.
    consuming func abort() { breakWhenClosed() }

    /// How many segments with data came in (TCP_INFO).
    func receivedSegments() throws -> UInt32 {
        var information = tcp_info_words()
        var length = socklen_t(MemoryLayout<tcp_info_words>.size)
        let number = descriptor.rawValue
        _ = try systemCall("getsockopt") {
            // The pointer lives for the call and the length is the structure's.
            unsafe getsockopt(number, Int32(IPPROTO_TCP), 11, &information, &length)
        }
        return information.words[38]
    }
}

/// The kernel's `struct tcp_info` as words: `tcpi_data_segs_in` is the 39th.
private struct tcp_info_words {
    var words = InlineArray<64, UInt32>(repeating: 0)
}
