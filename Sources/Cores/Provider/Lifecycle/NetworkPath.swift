public import IPPacket

/// The way by which the machine reaches the network outside of every tunnel: what Apple's NWPath says of it. Two paths that are
/// equal lead the same way; anything else is a change that a provider has to follow. A host therefore lists addresses in an order
/// that stays while they do.
public struct NetworkPath: Hashable, Sendable {
    /// Whether the path can be used.
    public enum Status: Hashable, Sendable {
        /// It can.
        case satisfied
        /// It cannot: there is no link, or no route.
        case unsatisfied
        /// It may become usable when something tries to use it.
        case requiresConnection
    }

    /// Whether the path can be used.
    public var status: Status
    /// The number of the interface; zero when there is none.
    public var interfaceIndex: UInt32
    /// The name of the interface; empty when there is none.
    public var interfaceName: String
    /// The machine's own addresses on the interface.
    public var addresses: [IPAddress]
    /// The routers that lead on.
    public var gateways: [IPAddress]
    /// True when IPv4 destinations can be reached.
    public var supportsIPv4: Bool
    /// True when IPv6 destinations can be reached.
    public var supportsIPv6: Bool

    /// A path over an interface.
    public init(
        status: Status = .satisfied, interfaceIndex: UInt32 = 0, interfaceName: String = "",
        addresses: [IPAddress] = [], gateways: [IPAddress] = [], supportsIPv4: Bool = true, supportsIPv6: Bool = true
    ) {
        self.status = status
        self.interfaceIndex = interfaceIndex
        self.interfaceName = interfaceName
        self.addresses = addresses
        self.gateways = gateways
        self.supportsIPv4 = supportsIPv4
        self.supportsIPv6 = supportsIPv6
    }

    /// No path at all.
    public static var none: NetworkPath {
        NetworkPath(status: .unsatisfied, supportsIPv4: false, supportsIPv6: false)
    }

    /// True when packets can be sent by it.
    public var isUsable: Bool { status != .unsatisfied }

    /// True when addresses of `version` can be reached by it.
    public func supports(_ version: IPVersion) -> Bool {
        switch version {
        case .v4: supportsIPv4
        case .v6: supportsIPv6
        }
    }
}
