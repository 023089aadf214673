/// The sockets of both families on one port; one of them is missing when the machine lacks its family.
struct UDPSocketPair: ~Copyable {
    /// The IPv4 socket.
    let v4: UDPSocket?
    /// The IPv6 socket, which takes no IPv4.
    let v6: UDPSocket?
    /// The port in host order that both are bound to.
    let port: UInt16
    /// True when the kernel may join datagrams of one sender into a train.
    let receivesTrains: Bool

    /// The sockets on `port`.
    init(v4: consuming UDPSocket?, v6: consuming UDPSocket?, port: UInt16, receivesTrains: Bool = false) {
        self.v4 = v4
        self.v6 = v6
        self.port = port
        self.receivesTrains = receivesTrains
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

    /// What the privileged side knows the sockets by.
    var identifiers: [SocketIdentifier] {
        var identifiers: [SocketIdentifier] = []
        switch v4 {
        case .some(let socket): identifiers.append(socket.identifier)
        case .none: break
        }
        switch v6 {
        case .some(let socket): identifiers.append(socket.identifier)
        case .none: break
        }
        return identifiers
    }

    /// Lets a loop watch the socket of a family, if there is one, for datagrams.
    func register(_ family: AddressFamily, with loop: borrowing EventLoop, token: UInt64) throws(SystemCallError) {
        switch family {
        case .v4: try Self.register(v4, with: loop, token: token)
        case .v6: try Self.register(v6, with: loop, token: token)
        }
    }

    /// Stops watching both. The privileged side may keep duplicates, so closing would not be enough.
    func unregister(from loop: borrowing EventLoop) {
        Self.unregister(v4, from: loop)
        Self.unregister(v6, from: loop)
    }

    private static func register(
        _ socket: borrowing UDPSocket?, with loop: borrowing EventLoop, token: UInt64
    ) throws(SystemCallError) {
        switch socket {
        case .some(let socket): try loop.register(socket.descriptor, token: token, interest: .readable)
        case .none: break
        }
    }

    private static func unregister(_ socket: borrowing UDPSocket?, from loop: borrowing EventLoop) {
        switch socket {
        // One that was never registered is not watched either.
        case .some(let socket): try? loop.unregister(socket.descriptor)
        case .none: break
        }
    }
}
