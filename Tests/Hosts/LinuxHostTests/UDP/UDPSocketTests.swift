import ByteAccess
import CLinux
import Glibc
import IPPacket
import Provider
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct UDPSocketTests {
    @Test func bothFamiliesShareOnePort() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
            #expect(pair.port == 51_820)
            #expect(try port(of: pair, .v4) == 51_820)
            #expect(try port(of: pair, .v6) == 51_820)
            let chosen = try channel.openUDPSockets(port: 0, mark: 0)
            #expect(chosen.port != 0)
            #expect(try port(of: chosen, .v4) == chosen.port)
            #expect(try port(of: chosen, .v6) == chosen.port)
        }
    }

    @Test func aPortInUseIsReportedAndTheFirstSocketsLive() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let first = try channel.openUDPSockets(port: 51_820, mark: 0)
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("bind", errno: EADDRINUSE))) {
                _ = try channel.openUDPSockets(port: 51_820, mark: 0)
            }
            // Taken in IPv6 alone is taken, too.
            let blocker = try socketV6(port: 51_821)
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("bind", errno: EADDRINUSE))) {
                _ = try channel.openUDPSockets(port: 51_821, mark: 0)
            }
            _ = blocker.rawValue
            var batch = SendBatch(capacity: 1, byteCapacity: 16)
            var received = ReceiveBatch(capacity: 1)
            batch.add([7], to: Endpoint(address: address("127.0.0.1"), port: 51_820))
            let result = batch.flush(to: first) { Issue.record("\($0)") }
            #expect(result.sent == 1)
            let length = try received.waitForOne(from: first, .v4).length
            #expect(length == 1)
        }
    }

    @Test func aPortThatIsFreeInOneFamilyOnlyIsNotChosen() throws {
        try inNewNetworkNamespace {
            // Eight ports to choose from, seven of them taken in IPv6 only: a first choice fails seven times out of
            // eight.
            try setKernelSetting("net/ipv4/ip_local_port_range", "40000 40007")
            var blockers = DescriptorList()
            for port in 40_000..<40_007 { blockers.append(try socketV6(port: UInt16(port))) }
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 0, mark: 0)
            #expect(pair.port == 40_007)
            // With the last one taken there is none: a bounded number of attempts, then the reason.
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("bind", errno: EADDRINUSE))) {
                _ = try channel.openUDPSockets(port: 0, mark: 0)
            }
            #expect(blockers.count == 7)
        }
    }

    @Test(arguments: [AddressFamily.v4, .v6])
    func oneFamilyIsEnough(refused: AddressFamily) throws {
        // A system-call filter refuses sockets of the other family for good: on a thread of its own, which ends with
        // the test.
        let outcome = try onThreadOfItsOwn {
            try inNewNetworkNamespace {
                try refuseSockets(of: refused)
                var channel = InProcessPrivilegedChannel(PrivilegedService())
                let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
                return (pair.port, pair.descriptorNumber(for: .v4) != nil, pair.descriptorNumber(for: .v6) != nil)
            }
        }
        // The missing family must not make the other one take another port.
        #expect(outcome.0 == 51_820)
        #expect(outcome.1 == (refused != .v4))
        #expect(outcome.2 == (refused != .v6))
    }

    @Test func closedSocketsFreeTheirPort() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            do {
                let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
                let identifiers = pair.identifiers
                try channel.closeUDPSockets(identifiers)
                #expect(throws: PrivilegedFailure.unknownIdentifier) { try channel.closeUDPSockets(identifiers) }
            }
            let again = try channel.openUDPSockets(port: 51_820, mark: 0)
            #expect(again.port == 51_820)
        }
    }

    @Test func marksAreSetAtTheStartAndChangedLive() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 0, mark: 0x1234)
            for (mark, expected) in [(nil, 0x1234), (0xFFFF_FFFF, -1), (0, 0)] as [(UInt32?, Int32)] {
                if let mark { try channel.setMark(mark, on: pair.identifiers) }
                for family in AddressFamily.allCases {
                    let found = try option(SOL_SOCKET, SO_MARK, of: pair, family)
                    #expect(found == expected)
                }
            }
        }
    }

    @Test func buffersAreOneMebibyteAndNothingBlocks() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 0, mark: 0)
            for family in AddressFamily.allCases {
                // The kernel reports twice what was asked for: its own bookkeeping is counted.
                let receive = try option(SOL_SOCKET, SO_RCVBUF, of: pair, family)
                let send = try option(SOL_SOCKET, SO_SNDBUF, of: pair, family)
                #expect(receive == 2 << 20)
                #expect(send == 2 << 20)
                let number = pair.descriptorNumber(for: family) ?? -1
                #expect(fcntl(number, F_GETFL) & O_NONBLOCK != 0)
                #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0)
            }
        }
    }

    private func port(of pair: borrowing UDPSocketPair, _ family: AddressFamily) throws -> UInt16 {
        let number = pair.descriptorNumber(for: family) ?? -1
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        _ = try systemCall("getsockname") {
            unsafe withSocketAddress(&address) { pointer, _ in unsafe getsockname(number, pointer, &length) }
        }
        // The port is in the same place in both families.
        return UInt16(bigEndian: address.sin6_port)
    }

    private func option(
        _ level: Int32, _ option: Int32, of pair: borrowing UDPSocketPair, _ family: AddressFamily
    ) throws -> Int32 {
        let number = pair.descriptorNumber(for: family) ?? -1
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = try systemCall("getsockopt") { unsafe getsockopt(number, level, option, &value, &length) }
        return value
    }

    /// A socket that takes a port in IPv6 alone.
    private func socketV6(port: UInt16) throws -> FileDescriptor {
        let descriptor = FileDescriptor(
            adopting: try systemCall("socket") { socket(AF_INET6, Int32(SOCK_DGRAM.rawValue), 0) })
        let number = descriptor.rawValue
        var one: Int32 = 1
        _ = try systemCall("setsockopt") {
            unsafe setsockopt(number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &one, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        _ = try systemCall("bind") { unsafe withSocketAddress(&address) { unsafe bind(number, $0, $1) } }
        return descriptor
    }
}
