import Glibc
import IPPacket
import Testing
import WireGuard

@testable import LinuxHost

/// Several sockets on one port.
@Suite struct SocketPairsTests {
    @Test(arguments: ["127.0.0.1", "::1"])
    func sendersAreSpreadAndEachStaysWithItsSocket(text: String) throws {
        try aloneInNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            var pairs = try channel.openUDPSocketPairs(port: 40_002, mark: 0, wantsTrains: true, count: 2)
            #expect(pairs.count == 2)
            guard let first = pairs.takeFirst(), let second = pairs.takeFirst() else {
                throw Impatience(awaited: "two")
            }
            #expect(pairs.count == 0)
            #expect(first.port == 40_002 && second.port == 40_002 && second.receivesTrains)
            let family = AddressFamily(of: address(text))
            // The kernel chooses by a hash of addresses and ports with a random seed: that all of 32 senders go to one of two is
            // as likely as 31 heads in a row.
            for round in 0..<2 {
                for port in 0..<32 {
                    let sender = try channel.openUDPSockets(port: UInt16(41_000 + port), mark: 0)
                    var batch = SendBatch(capacity: 1, byteCapacity: 64)
                    batch.addTrain(
                        of: 1, length: 8, from: round * 32 + port, to: Endpoint(address: address(text), port: 40_002))
                    #expect(batch.flush(to: sender) { Issue.record("\($0)") }.sent == 1)
                    try channel.closeUDPSockets(sender.identifiers)
                }
            }
            let atFirst = try senders(at: first, family)
            let atSecond = try senders(at: second, family)
            #expect(!atFirst.isEmpty && !atSecond.isEmpty)
            #expect(atFirst.count + atSecond.count == 64)
            #expect(Set(atFirst).isDisjoint(with: atSecond))
            #expect(Set(atFirst).union(atSecond).count == 32)
        }
    }

    @Test func sharingIsAmongThemselvesOnly() throws {
        try aloneInNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let shared = try channel.openUDPSocketPairs(port: 40_002, mark: 0, wantsTrains: false, count: 3)
            #expect(shared.count == 3)
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("bind", errno: EADDRINUSE))) {
                _ = try channel.openUDPSocketPairs(port: 40_002, mark: 0, wantsTrains: false, count: 3)
            }
            // Nor is a shared port one that may be chosen for another group.
            try setKernelSetting("net/ipv4/ip_local_port_range", "40002 40003")
            let chosen = try channel.openUDPSocketPairs(port: 0, mark: 0, wantsTrains: false, count: 3)
            #expect(chosen.port == 40_003)
        }
    }

    @Test func anImpossibleNumberIsRefused() {
        var channel = InProcessPrivilegedChannel(PrivilegedService())
        for count in [0, -1, 65] {
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("bind", errno: EINVAL))) {
                _ = try channel.openUDPSocketPairs(port: 0, mark: 0, wantsTrains: false, count: count)
            }
        }
    }

    /// The ports that what waits at a socket came from.
    private func senders(at pair: borrowing UDPSocketPair, _ family: AddressFamily) throws -> [UInt16] {
        var batch = ReceiveBatch(capacity: 128)
        _ = try batch.receive(from: pair, family)
        return (0..<batch.count).compactMap { batch.datagram(at: $0)?.path.remote.port }
    }
}
