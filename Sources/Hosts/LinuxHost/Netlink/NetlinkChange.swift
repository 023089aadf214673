internal import IPPacket

/// An interface as netlink describes it.
struct Link: Equatable, Sendable {
    /// Its index in its network namespace.
    var index: UInt32
    /// Its name; empty when the kernel did not tell.
    var name: String
    /// Its maximum transmission unit in bytes; 0 when the kernel did not tell.
    var maximumTransmissionUnit: Int
    /// True when it is administratively up.
    var isUp: Bool
    /// True for a TUN device whose packets come with four bytes of packet information in front.
    var hasPacketInformation = false
}

/// Something that changed in a network namespace.
enum NetlinkChange: Equatable, Sendable {
    /// An interface came, or something about it changed.
    case linkChanged(Link)
    /// An interface was deleted or moved to another namespace.
    case linkRemoved(index: UInt32)
    /// An interface got an address.
    case addressAdded(IPAddress, interfaceIndex: UInt32)
    /// An interface lost an address.
    case addressRemoved(IPAddress, interfaceIndex: UInt32)
    /// A route or a routing rule of this family came, went or changed.
    case routesChanged(AddressFamily)
    /// The kernel could not keep up with telling: anything may have changed.
    case everythingMayHaveChanged
}

/// What a change is about, for those to whom it does not matter which interface or address it is.
struct NetlinkSubject: Hashable, Sendable {
    /// The kinds of things that change.
    enum Kind: Hashable, Sendable, CaseIterable {
        /// Interfaces.
        case link
        /// Addresses of interfaces.
        case address
        /// Routes and routing rules.
        case route
    }

    /// The kind of the thing.
    var kind: Kind
    /// Its family; nil for links, which have none.
    var family: AddressFamily?
}

extension NetlinkChange {
    /// What the change is about; nil when it may be about everything.
    var subject: NetlinkSubject? {
        switch self {
        case .linkChanged, .linkRemoved: NetlinkSubject(kind: .link, family: nil)
        case .addressAdded(let address, _), .addressRemoved(let address, _):
            NetlinkSubject(kind: .address, family: AddressFamily(of: address))
        case .routesChanged(let family): NetlinkSubject(kind: .route, family: family)
        case .everythingMayHaveChanged: nil
        }
    }
}
