internal import ByteAccess
internal import CLinux
internal import Glibc
internal import IPPacket
internal import WireGuard

/// A socket of ours to one server, and its port, which is known to ``OwnPorts`` for as long as the socket is open.
struct ServerSocket: ~Copyable {
    /// What the event loop watches.
    let descriptor: FileDescriptor
    private let port: UInt16
    private let transport: OwnPorts.Transport
    private let ports: OwnPorts

    /// How often a port is drawn before the kernel chooses one.
    private static let drawCount = 16

    /// A UDP socket that takes datagrams of this server alone, from a port that nobody can foresee (RFC 5452 §9.2): the ports from
    /// 32768 on are drawn from, which no service is given.
    static func datagram(
        to server: AddressAndPort, ports: OwnPorts, random: inout RandomWords
    ) throws(SystemCallError) -> ServerSocket {
        let descriptor = try make(SOCK_DGRAM, server.address)
        // Errors of the way to the server end the exchange at once, not only those of the server.
        switch server.address {
        case .v4: try set(IPPROTO_IP, IP_RECVERR, of: descriptor)
        case .v6: try set(IPPROTO_IPV6, IPV6_RECVERR, of: descriptor)
        }
        var port: UInt16?
        for _ in 0..<drawCount {
            let drawn = random.nextUInt16() | 0x8000
            guard ports.claim(drawn, .udp) else { continue }
            do throws(SystemCallError) {
                try bind(descriptor, to: server.address, port: drawn)
                port = drawn
                break
            } catch {
                ports.release(drawn, .udp)
                guard error.errno == EADDRINUSE || error.errno == EACCES else { throw error }
            }
        }
        return try connected(descriptor, port, .udp, server, ports)
    }

    /// A TCP socket that is about to be connected to the server.
    static func stream(to server: AddressAndPort, ports: OwnPorts) throws(SystemCallError) -> ServerSocket {
        let descriptor = try make(SOCK_STREAM, server.address)
        try set(IPPROTO_TCP, TCP_NODELAY, of: descriptor)
        return try connected(descriptor, nil, .tcp, server, ports)
    }

    deinit {
        // The descriptor is closed a moment later; nothing is sent in between.
        ports.release(port, transport)
    }

    private init(
        _ descriptor: consuming FileDescriptor, _ port: UInt16, _ transport: OwnPorts.Transport, _ ports: OwnPorts
    ) {
        self.descriptor = descriptor
        self.port = port
        self.transport = transport
        self.ports = ports
    }

    private static func make(_ type: __socket_type, _ address: IPAddress) throws(SystemCallError) -> FileDescriptor {
        let family = AddressFamily(of: address).socketFamily
        let flags = Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = FileDescriptor(adopting: try systemCall("socket") { socket(family, flags, 0) })
        if case .v6 = address { try set(IPPROTO_IPV6, IPV6_V6ONLY, of: descriptor) }
        return descriptor
    }

    private static func set(
        _ level: some BinaryInteger, _ option: Int32, of descriptor: borrowing FileDescriptor
    ) throws(SystemCallError) {
        let number = descriptor.rawValue
        var value: Int32 = 1
        _ = try systemCall("setsockopt") {
            // The pointer lives for the call and the size is the value's.
            unsafe setsockopt(number, Int32(level), option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
    }

    /// Gives the socket a port when it has none, and connects it. The port is known before the first packet leaves.
    private static func connected(
        _ descriptor: consuming FileDescriptor, _ port: UInt16?, _ transport: OwnPorts.Transport,
        _ server: AddressAndPort, _ ports: OwnPorts
    ) throws(SystemCallError) -> ServerSocket {
        let chosen: UInt16
        if let port {
            chosen = port
        } else {
            try bind(descriptor, to: server.address, port: 0)
            chosen = try ownPort(of: descriptor)
            guard ports.claim(chosen, transport) else { throw SystemCallError("bind", errno: EADDRINUSE) }
        }
        let socket = ServerSocket(descriptor, chosen, transport, ports)
        let number = socket.descriptor.rawValue
        do throws(SystemCallError) {
            _ = unsafe try withAddress(server.address, server.port, "connect") { unsafe connect(number, $0, $1) }
        } catch {
            guard error.errno == EINPROGRESS else { throw error }
        }
        return socket
    }

    private static func bind(
        _ descriptor: borrowing FileDescriptor, to family: IPAddress, port: UInt16
    ) throws(SystemCallError) {
        let any: IPAddress =
            switch family {
            case .v4: .v4(IPv4Address(bits: 0))
            case .v6: .v6(IPv6Address(high: 0, low: 0))
            }
        let number = descriptor.rawValue
        _ = unsafe try withAddress(any, port, "bind") { unsafe Glibc.bind(number, $0, $1) }
    }

    private static func ownPort(of descriptor: borrowing FileDescriptor) throws(SystemCallError) -> UInt16 {
        let number = descriptor.rawValue
        var storage = InlineArray<4, UInt64>(repeating: 0)
        var span = storage.mutableSpan
        var bytes = span.mutableOctets
        _ = try systemCall("getsockname") {
            unsafe bytes.withUnsafeMutableBytes { bytes in
                var length = socklen_t(bytes.count)
                // The kernel writes `length` bytes at most, and addresses may be read through this pointer's type.
                return unsafe getsockname(
                    number, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
            }
        }
        return storage.span.octets.bigEndianUInt16(at: 2)
    }

    private static func withAddress(
        _ address: IPAddress, _ port: UInt16, _ operation: StaticString,
        _ call: (UnsafePointer<sockaddr>?, socklen_t) -> Int32
    ) throws(SystemCallError) -> Int32 {
        var storage = InlineArray<4, UInt64>(repeating: 0)
        var span = storage.mutableSpan
        var bytes = span.mutableOctets
        let length = SocketAddress.write(Endpoint(address: address, port: port), to: &bytes)
        return try systemCall(operation) {
            unsafe bytes.withUnsafeBytes { bytes in
                // The address is `length` bytes long, and the kernel reads no more of it.
                unsafe call(bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(length))
            }
        }
    }
}

extension SystemCallError {
    /// True when there is no way to the server, or it does not take what is sent.
    var meansUnreachable: Bool {
        switch errno {
        case ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT, EACCES, EPERM,
            ENONET,
            ENOPROTOOPT, EPROTO, EINVAL:
            true
        default: false
        }
    }

    /// True when the machine has no room for another socket.
    var meansNoRoom: Bool {
        switch errno {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRINUSE, EAGAIN: true
        default: false
        }
    }
}
