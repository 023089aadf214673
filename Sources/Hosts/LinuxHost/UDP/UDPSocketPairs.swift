/// Pairs of sockets on one port, to be taken one by one. Those that nobody takes are closed.
struct UDPSocketPairs: ~Copyable {
    /// The port in host order that all are bound to.
    let port: UInt16
    /// True when the kernel may join datagrams of one sender into a train.
    let receivesTrains: Bool
    private var identifiers: [SocketIdentifierPair]
    private var descriptors: DescriptorList

    /// Takes over the descriptors that the privileged side opened: one for each identifier, IPv4 first in each pair.
    init(
        adopting descriptors: consuming DescriptorList, identifiers: [SocketIdentifierPair], port: UInt16,
        receivesTrains: Bool
    ) throws(PrivilegedFailure) {
        let expected = identifiers.reduce(0) { $0 + ($1.v4 == nil ? 0 : 1) + ($1.v6 == nil ? 0 : 1) }
        guard descriptors.count == expected else { throw .unexpectedReply }
        self.port = port
        self.receivesTrains = receivesTrains
        self.identifiers = identifiers.reversed()
        self.descriptors = descriptors
    }

    /// How many are left.
    var count: Int { identifiers.count }

    /// Takes the next pair; nil when none is left.
    mutating func takeFirst() -> UDPSocketPair? {
        guard let identifiers = identifiers.popLast() else { return nil }
        let v4 = takeSocket(identifiers.v4)
        let v6 = takeSocket(identifiers.v6)
        return UDPSocketPair(v4: v4, v6: v6, port: port, receivesTrains: receivesTrains)
    }

    private mutating func takeSocket(_ identifier: SocketIdentifier?) -> UDPSocket? {
        guard let identifier, let descriptor = descriptors.takeFirst() else { return nil }
        return UDPSocket(adopting: descriptor, identifier: identifier)
    }
}
