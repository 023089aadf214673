public import Provider

/// How a configuration contradicts itself, or the tunnel that runs.
public enum InvalidTunnelConfiguration: Error, Hashable, Sendable {
    /// Two peers have one public key; the numbers count from zero in the order of the configuration.
    case duplicatePeer(first: Int, second: Int)
    /// The largest packet, in bytes, is beyond what IPv4 allows: 68 to 65,535.
    case invalidMTU(Int)
    /// The largest packet, in bytes, is below the 1,280 that IPv6 needs, and an address is of IPv6.
    case mtuTooSmallForIPv6(Int)
    /// A reload names another interface: that takes a stop and a start.
    case changedInterfaceName
}

extension InvalidTunnelConfiguration: PubliclyLoggable, CustomStringConvertible {
    /// What is wrong.
    public var description: String {
        switch self {
        case .duplicatePeer(let first, let second): "peers \(first) and \(second) have the same public key"
        case .invalidMTU(let mtu): "an MTU of \(mtu) is not between 68 and 65535"
        case .mtuTooSmallForIPv6(let mtu): "an MTU of \(mtu) is below the 1280 that IPv6 needs"
        case .changedInterfaceName: "the interface of a running tunnel cannot be renamed"
        }
    }
}
