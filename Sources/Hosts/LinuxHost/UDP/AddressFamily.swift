internal import Glibc
internal import IPPacket

/// The two families that datagrams travel in.
enum AddressFamily: String, Codable, Sendable, CaseIterable {
    case v4
    case v6

    /// The family of an address.
    @inline(__always)
    init(of address: IPAddress) {
        switch address {
        case .v4: self = .v4
        case .v6: self = .v6
        }
    }

    /// The number that the socket calls use.
    var socketFamily: Int32 {
        switch self {
        case .v4: AF_INET
        case .v6: AF_INET6
        }
    }
}
