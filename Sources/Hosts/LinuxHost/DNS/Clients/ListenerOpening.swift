internal import ByteAccess
internal import CLinux
internal import DNSProxy
internal import Glibc
internal import IPPacket
internal import WireGuard

/// Opens the sockets of a listener.
///
/// A port that somebody else has is always found to be taken, also when its owner shares it: the first socket is bound as one that
/// shares with nobody. Only where a listener of our own is about to be replaced by one that overlaps with it, a wildcard by an
/// address for one, both share the port for that moment.
struct ListenerOpening {
    /// Room for queries that wait to be read, in bytes: a burst of 1,000 lost a fifth at the usual size.
    private static let bufferSize: Int32 = 1 << 20
    /// How many clients may wait to be accepted; the kernel cuts it to what the system allows.
    private static let backlog: Int32 = 1_024

    /// Where to listen.
    let address: AddressAndPort
    /// The listener's number.
    let number: Int
    /// How many threads read datagrams.
    let threads: Int
    /// True to share the port with a socket of this process that allows it.
    let sharesPort: Bool

    /// Opens all sockets, or throws and leaves none.
    func open() throws(ClientSideError) -> Listener {
        var datagrams: [DatagramSocket] = []
        for index in 0..<threads {
            do throws(SystemCallError) {
                let descriptor = try openDatagrams(isFirst: index == 0)
                datagrams.append(DatagramSocket(adopting: descriptor, number: number, address: address))
            } catch {
                throw .listening(address, .udp, error)
            }
        }
        let streams: FileDescriptor
        do throws(SystemCallError) { streams = try openStreams() } catch { throw .listening(address, .tcp, error) }
        return Listener(number: number, address: address, datagrams: datagrams, streams: streams)
    }

    private var family: AddressFamily { AddressFamily(of: address.address) }

    private func openDatagrams(isFirst: Bool) throws(SystemCallError) -> FileDescriptor {
        let descriptor = try makeSocket(SOCK_DGRAM, IPPROTO_UDP)
        switch family {
        case .v4:
            if address.address.isUnspecified { try descriptor.set(.packetInformationV4, to: 1) }
            // No word of ICMP about a path's MTU is believed: answers fit, and a forged one could have them cut.
            try descriptor.set(.pathMTUDiscoveryV4, to: IP_PMTUDISC_OMIT)
        case .v6:
            if address.address.isUnspecified { try descriptor.set(.packetInformationV6, to: 1) }
            try descriptor.set(.pathMTUDiscoveryV6, to: IPV6_PMTUDISC_OMIT)
        }
        // Without the privilege the size is what the system allows, which is no reason not to start.
        if (try? descriptor.set(.receiveBufferForced, to: Self.bufferSize)) == nil {
            try descriptor.set(.receiveBuffer, to: Self.bufferSize)
        }
        if (try? descriptor.set(.sendBufferForced, to: Self.bufferSize)) == nil {
            try descriptor.set(.sendBuffer, to: Self.bufferSize)
        }
        if !isFirst || sharesPort { try descriptor.set(.sharedPort, to: 1) }
        try bind(descriptor)
        if isFirst, threads > 1, !sharesPort { try descriptor.set(.sharedPort, to: 1) }
        return descriptor
    }

    /// Opens the socket that clients connect to.
    func openStreams() throws(SystemCallError) -> FileDescriptor {
        let descriptor = try makeSocket(SOCK_STREAM, IPPROTO_TCP)
        // Connections of the last run that the kernel still remembers are no reason not to start.
        try descriptor.set(.reusedAddress, to: 1)
        if sharesPort { try descriptor.set(.sharedPort, to: 1) }
        try bind(descriptor)
        let socketNumber = descriptor.rawValue
        _ = try systemCall("listen") { listen(socketNumber, Self.backlog) }
        return descriptor
    }

    private func makeSocket(_ type: __socket_type, _ transport: Int) throws(SystemCallError) -> FileDescriptor {
        let type = Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = FileDescriptor(
            adopting: try systemCall("socket") { socket(family.socketFamily, type, Int32(transport)) })
        // An IPv4 client is the IPv4 listener's.
        if family == .v6 { try descriptor.set(.onlyV6, to: 1) }
        return descriptor
    }

    private func bind(_ descriptor: borrowing FileDescriptor) throws(SystemCallError) {
        let endpoint = Endpoint(address: address.address, port: address.port)
        var bytes = [UInt8](repeating: 0, count: SocketAddress.capacity)
        var span = bytes.mutableSpan
        var octets = span.mutableOctets
        let length = socklen_t(SocketAddress.write(endpoint, to: &octets))
        let socketNumber = descriptor.rawValue
        _ = try systemCall("bind") {
            unsafe bytes.withUnsafeBytes { pointer in
                // Every socket address begins with the fields of sockaddr; the length is that of what was written.
                unsafe Glibc.bind(socketNumber, pointer.baseAddress?.assumingMemoryBound(to: sockaddr.self), length)
            }
        }
    }
}
