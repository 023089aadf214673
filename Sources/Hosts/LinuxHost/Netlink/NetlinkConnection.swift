internal import CNetlink
internal import Glibc
internal import IPPacket
internal import Provider

/// Links, addresses and routes of one network namespace: tells of changes and answers questions. Both at their own
/// descriptors, so that an answer never queues behind a flood of changes.
struct NetlinkConnection: ~Copyable {
    /// The most datagrams that one call reads, so that a flood of changes does not hold up the loop.
    private static let datagramsPerRead = 64

    /// True in the namespace that the daemon itself is in.
    let isHome: Bool
    private let changes: NetlinkSocket
    private let questions: NetlinkSocket

    /// Wraps the two sockets that the privileged side opened.
    init(
        changes: consuming FileDescriptor, questions: consuming FileDescriptor, isHome: Bool
    ) throws(NetlinkError) {
        let changes = try NetlinkSocket(adopting: changes)
        let questions = try NetlinkSocket(adopting: questions)
        self.changes = changes
        self.questions = questions
        self.isHome = isHome
    }

    /// Starts telling an event loop when there are changes to read.
    func register(with loop: borrowing EventLoop, token: UInt64) throws(SystemCallError) {
        try loop.register(changes.descriptor, token: token, interest: .readable)
    }

    /// Stops telling it.
    func unregister(from loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.unregister(changes.descriptor)
    }

    /// Reads the changes that have come in and calls `body` with each.
    func readChanges(_ body: (NetlinkChange) -> Void) throws(NetlinkError) {
        for _ in 0..<Self.datagramsPerRead {
            let reception = try unsafe changes.receive { message in
                if let change = unsafe NetlinkMessage.change(message) { body(change) }
            }
            switch reception {
            case .datagram: continue
            case .nothing: return
            case .overrun: body(.everythingMayHaveChanged)
            }
        }
    }

    /// The interface of this name. Refused with `ENODEV` when there is none.
    func link(named name: InterfaceName) throws(NetlinkError) -> Link {
        try questions.link(named: name)
    }

    /// The interface with this index. Refused with `ENODEV` when there is none.
    func link(at index: UInt32) throws(NetlinkError) -> Link {
        try questions.link(at: index)
    }

    /// The route that a datagram to `destination` would take, as `NetlinkSocket` tells it.
    func route(
        to destination: IPAddress, from source: IPAddress? = nil, mark: UInt32 = 0, interface: UInt32 = 0
    ) throws(NetlinkError) -> Route {
        try questions.route(to: destination, from: source, mark: mark, interface: interface)
    }

    /// Calls `body` with every route of a family in every table.
    func forEachRoute(of family: AddressFamily, _ body: (ListedRoute) -> Void) throws(NetlinkError) {
        try questions.forEachRoute(of: family, body)
    }

    /// The addresses of an interface.
    func addresses(of index: UInt32) throws(NetlinkError) -> [InterfaceAddress] {
        try questions.addresses(of: index)
    }
}
