internal import Provider

/// Follows the TUN interface, in whatever network namespace it is, by netlink in that namespace: its MTU, and whether it is
/// up. The namespace's routes and addresses are another matter: they count where the sockets are.
///
/// ```
///   at home ── interface gone here, descriptor alive: it moved ──▶ away: netlink there ── it moved again ──▶ away
///      ▲                                                             │
///      └──────────────────────── it moved back ──────────────────────┘
/// ```
struct LinkFollower: ~Copyable {
    /// What is known about the link.
    struct State: Equatable {
        var maximumTransmissionUnit: Int
        var isUp: Bool
    }

    /// Netlink in the interface's namespace.
    private(set) var netlink: NetlinkConnection
    private var index: UInt32 = 0
    private(set) var state = State(maximumTransmissionUnit: 1_420, isUp: false)

    /// Follows the interface of `tun`.
    init(
        _ tun: borrowing TUNDevice, through channel: inout some PrivilegedChannel & ~Copyable
    ) throws(PrivilegedFailure) {
        netlink = try channel.openNetlink(namespaceOf: tun.identifier)
        refresh(tun)
    }

    /// Looks at the interface afresh. False when the namespace does not have it: it moved, or was deleted.
    @discardableResult
    mutating func refresh(_ tun: borrowing TUNDevice) -> Bool {
        guard let name = try? tun.currentName(), let link = try? netlink.link(named: name) else { return false }
        index = link.index
        state = State(maximumTransmissionUnit: link.maximumTransmissionUnit, isUp: link.isUp && tun.isLinkUp)
        return true
    }

    /// Reads what changed in the namespace.
    ///
    /// - Returns: False when the interface is no longer there.
    mutating func readChanges(_ tun: borrowing TUNDevice) -> Bool {
        var concernsUs = false
        let index = index
        do {
            try netlink.readChanges { change in
                switch change {
                case .linkChanged(let link): if link.index == index { concernsUs = true }
                case .linkRemoved(let removed): if removed == index { concernsUs = true }
                case .everythingMayHaveChanged: concernsUs = true
                case .addressAdded, .addressRemoved, .routesChanged: break
                }
            }
        } catch {
            concernsUs = true
        }
        return concernsUs ? refresh(tun) : true
    }
}
