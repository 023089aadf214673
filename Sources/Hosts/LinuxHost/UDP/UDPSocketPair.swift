/// The sockets of both families on one port; one of them is missing when the machine lacks its family.
struct UDPSocketPair: ~Copyable {
    /// The IPv4 socket.
    let v4: UDPSocket?
    /// The IPv6 socket, which takes no IPv4.
    let v6: UDPSocket?
    /// The port in host order that both are bound to.
    let port: UInt16

    /// The sockets on `port`.
    init(v4: consuming UDPSocket?, v6: consuming UDPSocket?, port: UInt16) {
        self.v4 = v4
        self.v6 = v6
        self.port = port
    }

    /// The descriptor for a family; nil when the machine lacks it.
    @inline(__always)
    func descriptorNumber(for family: AddressFamily) -> Int32? {
        switch family {
        case .v4:
            switch v4 {
            case .some(let socket): return socket.descriptor.rawValue
            case .none: return nil
            }
        case .v6:
            switch v6 {
            case .some(let socket): return socket.descriptor.rawValue
            case .none: return nil
            }
        }
    }
}
