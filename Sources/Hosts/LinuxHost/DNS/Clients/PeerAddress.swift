internal import ByteAccess
internal import Glibc
internal import IPPacket
internal import WireGuard

extension FileDescriptor {
    /// Who the other end of a connection is; nil when it has gone.
    func peerAddress() -> IPAddress? {
        var bytes = [UInt8](repeating: 0, count: SocketAddress.capacity)
        var length = socklen_t(SocketAddress.capacity)
        let socketNumber = rawValue
        let result = unsafe bytes.withUnsafeMutableBytes { pointer in
            // Every socket address begins with the fields of sockaddr; the length is the room that there is.
            unsafe getpeername(socketNumber, pointer.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
        }
        guard result == 0 else { return nil }
        return SocketAddress.read(bytes.span.octets.extracting(..<min(Int(length), bytes.count)))?.address
    }
}
