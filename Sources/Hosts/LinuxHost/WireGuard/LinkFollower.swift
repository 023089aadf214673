internal import Provider

/// Follows the TUN interface, in whatever network namespace it is: its MTU, and whether it is up. It hears of changes by one
/// socket at home and looks at the interface through another that it opens for the moment: a socket kept in the interface's
/// namespace would keep that namespace, and the interface in it, in being after everybody else has left.
struct LinkFollower: ~Copyable {
    /// What is known about the link.
    struct State: Equatable {
        var maximumTransmissionUnit: Int
        var isUp: Bool
        var hasPacketInformation = false
    }

    /// Tells of the changes of links in all namespaces.
    let notices: NetlinkConnection
    private var name: String
    /// The interface's number in its network namespace.
    private(set) var index: UInt32 = 0
    private(set) var state = State(maximumTransmissionUnit: 1_420, isUp: false)

    /// Follows the interface of `tun`, which is called `name`.
    init(
        _ tun: borrowing TUNDevice, name: InterfaceName, through channel: inout some PrivilegedChannel & ~Copyable
    ) throws(PrivilegedFailure) {
        notices = try channel.openLinkNotices()
        self.name = name.string
        refresh(tun, through: &channel)
    }

    /// Looks at the interface afresh. One that cannot be found is about to be deleted, or on its way to another namespace: the
    /// next notice, or reading from the descriptor, tells which.
    mutating func refresh(_ tun: borrowing TUNDevice, through channel: inout some PrivilegedChannel & ~Copyable) {
        guard let name = try? tun.currentName(),
            let netlink = try? channel.openNetlink(namespaceOf: tun.identifier),
            let link = try? netlink.link(named: name)
        else { return }
        self.name = name.string
        index = link.index
        state = State(
            maximumTransmissionUnit: link.maximumTransmissionUnit, isUp: link.isUp && tun.isLinkUp,
            hasPacketInformation: link.hasPacketInformation)
    }

    /// Reads the notices that came in. True when one may concern the interface.
    mutating func readNotices() -> Bool {
        var concernsUs = false
        let (name, index) = (name, index)
        do {
            try notices.readChanges { change in
                switch change {
                case .linkChanged(let link): if link.index == index || link.name == name { concernsUs = true }
                case .linkRemoved(let removed): if removed == index { concernsUs = true }
                case .everythingMayHaveChanged: concernsUs = true
                case .addressAdded, .addressRemoved, .routesChanged: break
                }
            }
        } catch {
            concernsUs = true
        }
        return concernsUs
    }
}
