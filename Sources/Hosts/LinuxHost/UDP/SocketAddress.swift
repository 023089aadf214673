internal import ByteAccess
internal import Glibc
internal import IPPacket
internal import WireGuard

/// Reads and writes the kernel's socket addresses: the family in host order, then sockaddr_in's port and address, or
/// sockaddr_in6's port, flow information, address and scope, in network order but for the scope.
enum SocketAddress {
    /// Room for an address of either family, in bytes.
    static let capacity = 32
    /// The size of sockaddr_in.
    static let lengthV4 = 16
    /// The size of sockaddr_in6.
    static let lengthV6 = 28

    /// Writes `endpoint` to the start of `bytes`, which has at least `capacity` bytes, and returns the address's
    /// length.
    @inline(__always)
    static func write(_ endpoint: Endpoint, to bytes: inout MutableRawSpan) -> Int {
        switch endpoint.address {
        case .v4(let address):
            bytes.storeBytes(of: sa_family_t(AF_INET), as: sa_family_t.self)
            bytes.storeBigEndian(endpoint.port, at: 2)
            bytes.storeBigEndian(address.bits, at: 4)
            bytes.zero(from: 8, count: 8)
            return lengthV4
        case .v6(let address):
            bytes.storeBytes(of: sa_family_t(AF_INET6), as: sa_family_t.self)
            bytes.storeBigEndian(endpoint.port, at: 2)
            bytes.zero(from: 4, count: 4)
            bytes.storeBigEndian(address.high, at: 8)
            bytes.storeBigEndian(address.low, at: 16)
            bytes.storeBytes(of: endpoint.scope, toByteOffset: 24, as: UInt32.self)
            return lengthV6
        }
    }

    /// True when `read` finds an address.
    @inline(__always)
    static func isUsable(_ bytes: RawSpan) -> Bool {
        guard bytes.byteCount >= lengthV4 else { return false }
        // In bounds by the check above; every bit pattern is a valid integer.
        let family = unsafe bytes.unsafeLoadUnaligned(as: sa_family_t.self)
        return family == sa_family_t(AF_INET) || family == sa_family_t(AF_INET6) && bytes.byteCount >= lengthV6
    }

    /// Reads the address that fills `bytes`; nil when it is of another family or too short.
    @inline(__always)
    static func read(_ bytes: RawSpan) -> Endpoint? {
        guard bytes.byteCount >= lengthV4 else { return nil }
        // In bounds by the check above; every bit pattern is a valid integer.
        let family = unsafe bytes.unsafeLoadUnaligned(as: sa_family_t.self)
        let port = bytes.bigEndianUInt16(at: 2)
        if family == sa_family_t(AF_INET) {
            return Endpoint(address: .v4(IPv4Address(bits: bytes.bigEndianUInt32(at: 4))), port: port)
        }
        guard family == sa_family_t(AF_INET6), bytes.byteCount >= lengthV6 else { return nil }
        let address = IPv6Address(high: bytes.bigEndianUInt64(at: 8), low: bytes.bigEndianUInt64(at: 16))
        // In bounds by the check above; every bit pattern is a valid integer.
        let scope = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 24, as: UInt32.self)
        return Endpoint(address: .v6(address), port: port, scope: scope)
    }
}
