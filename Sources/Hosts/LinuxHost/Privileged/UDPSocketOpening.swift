internal import CLinux
internal import Glibc

extension PrivilegedService {
    /// The size of the sockets' buffers in bytes, when it is permitted; the kernel counts its own overhead against twice as
    /// much. Enough for a burst of some thirty trains of 64 KiB; more would only be waiting time: 7 MiB, as others set it,
    /// is 20 ms at 3 Gbit/s, and a fast sender keeps it full.
    static let socketBufferSize: Int32 = 1 << 20
    /// How often another port is tried when the one that the kernel chose for IPv4 is taken in IPv6.
    static let portAttempts = 100

    /// The most pairs that one port is shared among.
    static let maximumSocketPairs = 64

    /// Binds a socket of each family that the machine has to one port, `count` times over.
    mutating func openUDPSockets(
        port: UInt16, mark: UInt32, wantsTrains: Bool, count: Int
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        guard (1...Self.maximumSocketPairs).contains(count) else {
            throw .systemCall(SystemCallError("bind", errno: EINVAL))
        }
        var attempts = port == 0 ? Self.portAttempts : 1
        while true {
            attempts -= 1
            do throws(SystemCallError) {
                return try bindPairs(port: port, mark: mark, wantsTrains: wantsTrains, count: count)
            } catch {
                if error.errno != EADDRINUSE || attempts == 0 { throw .systemCall(error) }
            }
        }
    }

    /// Changes the mark of sockets that were opened earlier.
    func setMark(_ mark: UInt32, on identifiers: [SocketIdentifier]) throws(PrivilegedFailure) -> PrivilegedExchange {
        for identifier in identifiers {
            guard let socket = sockets[identifier] else { throw .unknownIdentifier }
            do throws(SystemCallError) {
                try setOption("SO_MARK", SOL_SOCKET, SO_MARK, Int32(bitPattern: mark), of: socket.descriptor)
            } catch { throw .systemCall(error) }
        }
        return PrivilegedExchange(.done)
    }

    private mutating func bindPairs(
        port: UInt16, mark: UInt32, wantsTrains: Bool, count: Int
    ) throws(SystemCallError) -> PrivilegedExchange {
        var descriptors = DescriptorList()
        var pairs: [SocketIdentifierPair] = []
        var duplicates: [(SocketIdentifier, OwnedDescriptor)] = []
        var port = port
        var missing: SystemCallError?
        var receivesTrains = wantsTrains
        for index in 0..<count {
            var pair = SocketIdentifierPair()
            for family in AddressFamily.allCases {
                do throws(SystemCallError) {
                    let descriptor = try makeSocket(family, mark: mark)
                    if receivesTrains { receivesTrains = enableTrains(on: descriptor) }
                    // The first socket is bound as one that shares with nobody, so that a port in use is found to be so even
                    // when the other's owner shares; from then on it does.
                    if index > 0 { try sharePort(descriptor) }
                    port = try bind(descriptor, family: family, port: port)
                    if index == 0 && count > 1 { try sharePort(descriptor) }
                    let identifier = SocketIdentifier(rawValue: makeIdentifier())
                    duplicates.append((identifier, OwnedDescriptor(try descriptor.duplicate())))
                    switch family {
                    case .v4: pair.v4 = identifier
                    case .v6: pair.v6 = identifier
                    }
                    descriptors.append(descriptor)
                } catch {
                    guard error.meansMissingFamily else { throw error }
                    missing = error
                }
            }
            if let missing, pair == SocketIdentifierPair() { throw missing }
            pairs.append(pair)
        }
        for (identifier, duplicate) in duplicates { sockets[identifier] = duplicate }
        return PrivilegedExchange(.sockets(pairs, port: port, receivesTrains: receivesTrains), descriptors)
    }

    private func sharePort(_ descriptor: borrowing FileDescriptor) throws(SystemCallError) {
        try setOption("SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT, 1, of: descriptor)
    }

    /// Lets the kernel join datagrams of one sender. False when it cannot (before Linux 5.0).
    private func enableTrains(on descriptor: borrowing FileDescriptor) -> Bool {
        do throws(SystemCallError) {
            try setOption("UDP_GRO", Int32(IPPROTO_UDP), UDP_GRO, 1, of: descriptor)
            return true
        } catch {
            return false
        }
    }

    private func makeSocket(_ family: AddressFamily, mark: UInt32) throws(SystemCallError) -> FileDescriptor {
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = FileDescriptor(
            adopting: try systemCall("socket") { socket(family.socketFamily, type, Int32(IPPROTO_UDP)) })
        let socketLevel = SOL_SOCKET
        switch family {
        case .v4:
            let level = Int32(IPPROTO_IP)
            try setOption("IP_PKTINFO", level, IP_PKTINFO, 1, of: descriptor)
            try setOption("IP_RECVTOS", level, IP_RECVTOS, 1, of: descriptor)
            // The outer header leaves without DF, so that any path carries it.
            try setOption("IP_MTU_DISCOVER", level, IP_MTU_DISCOVER, IP_PMTUDISC_DONT, of: descriptor)
        case .v6:
            let level = Int32(IPPROTO_IPV6)
            try setOption("IPV6_V6ONLY", level, IPV6_V6ONLY, 1, of: descriptor)
            try setOption("IPV6_RECVPKTINFO", level, IPV6_RECVPKTINFO, 1, of: descriptor)
            try setOption("IPV6_RECVTCLASS", level, IPV6_RECVTCLASS, 1, of: descriptor)
            try setOption("IPV6_MTU_DISCOVER", level, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT, of: descriptor)
        }
        let size = Self.socketBufferSize
        // Without the privilege the size is what the system allows, which is no reason not to start.
        do throws(SystemCallError) {
            try setOption("SO_RCVBUFFORCE", socketLevel, SO_RCVBUFFORCE, size, of: descriptor)
            try setOption("SO_SNDBUFFORCE", socketLevel, SO_SNDBUFFORCE, size, of: descriptor)
        } catch {
            try setOption("SO_RCVBUF", socketLevel, SO_RCVBUF, size, of: descriptor)
            try setOption("SO_SNDBUF", socketLevel, SO_SNDBUF, size, of: descriptor)
        }
        if mark != 0 {
            try setOption("SO_MARK", socketLevel, SO_MARK, Int32(bitPattern: mark), of: descriptor)
        }
        return descriptor
    }

    /// Binds to the unspecified address and returns the port.
    private func bind(
        _ descriptor: borrowing FileDescriptor, family: AddressFamily, port: UInt16
    ) throws(SystemCallError) -> UInt16 {
        let number = descriptor.rawValue
        switch family {
        case .v4:
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            _ = try systemCall("bind") { unsafe withSocketAddress(&address) { unsafe Glibc.bind(number, $0, $1) } }
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            _ = try systemCall("getsockname") {
                unsafe withSocketAddress(&address) { pointer, _ in unsafe getsockname(number, pointer, &length) }
            }
            return UInt16(bigEndian: address.sin_port)
        case .v6:
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            _ = try systemCall("bind") { unsafe withSocketAddress(&address) { unsafe Glibc.bind(number, $0, $1) } }
            var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            _ = try systemCall("getsockname") {
                unsafe withSocketAddress(&address) { pointer, _ in unsafe getsockname(number, pointer, &length) }
            }
            return UInt16(bigEndian: address.sin6_port)
        }
    }

    private func setOption(
        _ name: StaticString, _ level: Int32, _ option: Int32, _ value: Int32, of descriptor: borrowing FileDescriptor
    ) throws(SystemCallError) {
        let number = descriptor.rawValue
        var value = value
        _ = try systemCall(name) {
            // The pointer lives for the call and the length is the integer's.
            unsafe setsockopt(number, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
    }
}

extension SystemCallError {
    /// True when a socket could not be made or bound because the machine lacks the family, or because a system-call
    /// filter refuses it.
    fileprivate var meansMissingFamily: Bool {
        switch (operation, errno) {
        case ("socket", EAFNOSUPPORT), ("socket", EPROTONOSUPPORT), ("socket", EPERM), ("socket", EACCES): true
        case ("bind", EADDRNOTAVAIL), ("bind", EAFNOSUPPORT): true
        default: false
        }
    }
}

/// Lends a socket address of either family as the general type that the socket calls take, with its size.
func withSocketAddress<Address, Result>(
    _ address: inout Address, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
) -> Result {
    unsafe withUnsafeMutablePointer(to: &address) { pointer in
        // Every socket address begins with the fields of sockaddr; callers pass the size of what they have.
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
            unsafe body(general, socklen_t(MemoryLayout<Address>.size))
        }
    }
}
