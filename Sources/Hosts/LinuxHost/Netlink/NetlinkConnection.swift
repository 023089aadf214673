internal import CNetlink
internal import Glibc
internal import IPPacket

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

    /// Sends a question and reads its answer. The kernel answers while it takes the question, so nothing is waited for.
    private func ask(
        _ message: OpaquePointer?, _ body: (UnsafeMutablePointer<nlmsghdr>) -> Void
    ) throws(NetlinkError) {
        guard let message = unsafe message else { throw .library(NLE_NOMEM) }
        let sequence = try unsafe questions.send(message)
        var isAnswered = false
        var refusal: Int32 = 0
        while !isAnswered {
            let reception = try unsafe questions.receive { answer in
                // A complete message, whose header lies within the datagram.
                guard unsafe answer.pointee.nlmsg_seq == sequence else { return }
                isAnswered = true
                if let error = unsafe NetlinkMessage.error(answer) { refusal = error } else { unsafe body(answer) }
            }
            if case .datagram = reception { continue }
            if !isAnswered { throw .malformedAnswer }
        }
        if refusal != 0 { throw .refused(errno: refusal) }
    }
}
