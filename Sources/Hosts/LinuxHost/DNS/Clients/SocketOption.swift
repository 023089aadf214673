internal import CLinux
internal import Glibc

/// An option of a socket whose value is an integer.
struct SocketOption: Sendable {
    /// What Linux calls it.
    let name: StaticString
    let level: Int32
    let number: Int32

    static var packetInformationV4: SocketOption { SocketOption("IP_PKTINFO", IPPROTO_IP, IP_PKTINFO) }
    static var packetInformationV6: SocketOption { SocketOption("IPV6_RECVPKTINFO", IPPROTO_IPV6, IPV6_RECVPKTINFO) }
    static var pathMTUDiscoveryV4: SocketOption { SocketOption("IP_MTU_DISCOVER", IPPROTO_IP, IP_MTU_DISCOVER) }
    static var pathMTUDiscoveryV6: SocketOption { SocketOption("IPV6_MTU_DISCOVER", IPPROTO_IPV6, IPV6_MTU_DISCOVER) }
    static var onlyV6: SocketOption { SocketOption("IPV6_V6ONLY", IPPROTO_IPV6, IPV6_V6ONLY) }
    static var receiveBuffer: SocketOption { SocketOption("SO_RCVBUF", Int(SOL_SOCKET), SO_RCVBUF) }
    static var receiveBufferForced: SocketOption { SocketOption("SO_RCVBUFFORCE", Int(SOL_SOCKET), SO_RCVBUFFORCE) }
    static var sendBuffer: SocketOption { SocketOption("SO_SNDBUF", Int(SOL_SOCKET), SO_SNDBUF) }
    static var sendBufferForced: SocketOption { SocketOption("SO_SNDBUFFORCE", Int(SOL_SOCKET), SO_SNDBUFFORCE) }
    static var sharedPort: SocketOption { SocketOption("SO_REUSEPORT", Int(SOL_SOCKET), SO_REUSEPORT) }
    static var reusedAddress: SocketOption { SocketOption("SO_REUSEADDR", Int(SOL_SOCKET), SO_REUSEADDR) }
    static var undelayed: SocketOption { SocketOption("TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY) }

    private init(_ name: StaticString, _ level: Int, _ number: Int32) {
        self.name = name
        self.level = Int32(level)
        self.number = number
    }
}

extension FileDescriptor {
    /// Sets an option of the socket.
    func set(_ option: SocketOption, to value: Int32) throws(SystemCallError) {
        let socketNumber = rawValue
        var value = value
        _ = try systemCall(option.name) {
            // The pointer lives for the call and the length is the integer's.
            unsafe setsockopt(
                socketNumber, option.level, option.number, &value, socklen_t(MemoryLayout<Int32>.size))
        }
    }
}
