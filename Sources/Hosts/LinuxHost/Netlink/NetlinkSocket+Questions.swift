internal import CNetlink
internal import Glibc
internal import IPPacket

extension NetlinkSocket {
    /// The interface of this name. Refused with `ENODEV` when there is none.
    func link(named name: InterfaceName) throws(NetlinkError) -> Link {
        try unsafe link(NetlinkMessage.linkQuestion(index: 0, name: name.string))
    }

    /// The interface with this index. Refused with `ENODEV` when there is none.
    func link(at index: UInt32) throws(NetlinkError) -> Link {
        try unsafe link(NetlinkMessage.linkQuestion(index: index, name: nil))
    }

    /// The route that a datagram to `destination` would take, sent from `source` when there is one, with a firewall
    /// mark other than 0, and through an interface other than 0, which a link-local destination needs. Refused with
    /// `ENETUNREACH` when there is none, or when an IPv4 source is not an address of this machine; an IPv6 source is not
    /// looked at that closely.
    func route(
        to destination: IPAddress, from source: IPAddress? = nil, mark: UInt32 = 0, interface: UInt32 = 0
    ) throws(NetlinkError) -> Route {
        let message = unsafe NetlinkMessage.routeQuestion(
            to: destination, from: source, mark: mark, interface: interface)
        var route: Route?
        try unsafe ask(message) { answer in
            if let found = unsafe NetlinkMessage.route(answer) { route = found }
        }
        guard let route else { throw .malformedAnswer }
        return route
    }

    private func link(_ message: OpaquePointer?) throws(NetlinkError) -> Link {
        var link: Link?
        try unsafe ask(message) { answer in
            if case .linkChanged(let found)? = unsafe NetlinkMessage.change(answer) { link = found }
        }
        guard let link else { throw .malformedAnswer }
        return link
    }
}
