import ByteAccess
import Glibc
import IPPacket
import Provider
import TestSupport
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct SourceTests {
    @Test(arguments: [("127.0.0.1", "127.0.0.77"), ("fd00:5::1", "fd00:5::77")])
    func anAnswerLeavesFromTheAddressThatWasAsked(caller: String, asked: String) throws {
        try inNewNetworkNamespace {
            try run("ip", "addr", "add", "fd00:5::1/64", "dev", "lo", "nodad")
            try run("ip", "addr", "add", "fd00:5::77/64", "dev", "lo", "nodad")
            try awaitLocalRoutes("fd00:5::1", "fd00:5::77")
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let family = AddressFamily(of: address(caller))
            let client = try channel.openUDPSockets(port: 40_001, mark: 0)
            let server = try channel.openUDPSockets(port: 40_002, mark: 0)
            var batch = SendBatch(capacity: 2, byteCapacity: 64)
            var received = ReceiveBatch(capacity: 2)
            batch.add(
                [1], to: Endpoint(address: address(asked), port: 40_002),
                from: LocalSource(address: address(caller), interfaceIndex: 0))
            _ = batch.flush(to: client) { Issue.record("\($0)") }
            let question = try received.waitForOne(from: server, family)
            #expect(question.path.remote == Endpoint(address: address(caller), port: 40_001))
            #expect(question.path.source?.address == address(asked))
            batch.append(
                MessageTrain(offset: 0, length: 5), Transmission(peer: nil, path: question.path, trafficClass: 0x88))
            _ = batch.flush(to: server) { Issue.record("\($0)") }
            let answer = try received.waitForOne(from: client, family)
            #expect(answer.path.remote == Endpoint(address: address(asked), port: 40_002))
            #expect(answer.trafficClass == 0x88)
        }
    }

    @Test(arguments: [
        ("10.6.0.1/24", "10.6.0.2/24", "10.6.0.9", ENETUNREACH), ("fd00:6::1/64", "fd00:6::2/64", "fd00:6::9", EINVAL),
    ])
    func aVanishedSourceIsGivenUpAtOnceAndTold(near: String, far: String, gone: String, error: Int32) throws {
        try inNewNetworkNamespace {
            try withLinkedNamespace(localAddresses: [near], remoteAddresses: [far]) { other in
                var channel = InProcessPrivilegedChannel(PrivilegedService())
                let pair = try channel.openUDPSockets(port: 40_001, mark: 0)
                let server = try inNetworkNamespace(other) { try channel.openUDPSockets(port: 40_002, mark: 0) }
                let remote = Endpoint(address: withoutLength(far), port: 40_002)
                let stale = LocalSource(address: address(gone), interfaceIndex: 1)
                var batch = SendBatch(capacity: 8, byteCapacity: 64)
                batch.add([1], to: remote, peer: 1)
                do {
                    var free = batch.unusedBytes()
                    free.copy(([2, 3] as [UInt8]).span.octets, to: 0)
                }
                // A train: its first datagram finds the source gone, the second must not try it again.
                batch.append(
                    MessageTrain(offset: 0, count: 2, stride: 1, lastLength: 1),
                    Transmission(
                        peer: PeerIndex(rawValue: 2), path: Path(remote: remote, source: stale), trafficClass: 0x88))
                batch.add([4], to: remote, peer: 3)
                var failures: [SendFailure] = []
                let result = batch.flush(to: pair) { failures.append($0) }
                #expect(result == SendResult(sent: 4, sentInTrains: 2))
                #expect(
                    failures == [
                        SendFailure(
                            peer: PeerIndex(rawValue: 2), path: Path(remote: remote, source: stale), errno: error,
                            outcome: .sentWithoutSource)
                    ])
                var received = ReceiveBatch(capacity: 8)
                var bytes: [UInt8] = []
                var classes: [UInt8] = []
                while bytes.count < 4 {
                    _ = try received.waitForOne(from: server, AddressFamily(of: remote.address))
                    for index in 0..<received.count {
                        guard let datagram = received.datagram(at: index) else { throw Impatience(awaited: "a path") }
                        #expect(datagram.path.remote.address == withoutLength(near))
                        classes.append(datagram.trafficClass)
                        let span = received.bytes(at: index)
                        bytes += Array(span.bytes)
                    }
                }
                #expect(bytes == [1, 2, 3, 4])
                #expect(classes == [0, 0x88, 0x88, 0])
            }
        }
    }

    @Test func linkLocalPathsKeepTheirInterface() throws {
        try inNewNetworkNamespace {
            try withLinkedNamespace(localAddresses: ["fe80::a/64"], remoteAddresses: ["fe80::b/64"]) { other in
                var channel = InProcessPrivilegedChannel(PrivilegedService())
                let pair = try channel.openUDPSockets(port: 40_001, mark: 0)
                let server = try inNetworkNamespace(other) { try channel.openUDPSockets(port: 40_002, mark: 0) }
                let interface = interfaceIndex("slt-near")
                var batch = SendBatch(capacity: 2, byteCapacity: 64)
                var received = ReceiveBatch(capacity: 2)
                batch.add([1], to: Endpoint(address: address("fe80::b"), port: 40_002, scope: interface))
                _ = batch.flush(to: pair) { Issue.record("\($0)") }
                let question = try received.waitForOne(from: server, .v6)
                let remoteInterface = try inNetworkNamespace(other) { interfaceIndex("slt-far") }
                #expect(
                    question.path
                        == Path(
                            remote: Endpoint(address: address("fe80::a"), port: 40_001, scope: remoteInterface),
                            source: LocalSource(address: address("fe80::b"), interfaceIndex: remoteInterface)))
                batch.append(
                    MessageTrain(offset: 0, length: 1), Transmission(peer: nil, path: question.path, trafficClass: 0))
                _ = batch.flush(to: server) { Issue.record("\($0)") }
                let answer = try received.waitForOne(from: pair, .v6)
                #expect(answer.path.remote == Endpoint(address: address("fe80::b"), port: 40_002, scope: interface))
            }
        }
    }

    @Test func aDestinationWithoutRouteIsDroppedAndTold() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 0, mark: 0)
            var batch = SendBatch(capacity: 4, byteCapacity: 64)
            let nowhere = Endpoint(address: address("192.0.2.1"), port: 1)
            batch.add([1], to: nowhere, peer: 4)
            batch.add([1], to: nowhere, from: LocalSource(address: address("127.0.0.1"), interfaceIndex: 1), peer: 5)
            batch.add([1], to: Endpoint(address: address("127.0.0.1"), port: pair.port), peer: 6)
            var failures: [SendFailure] = []
            let result = batch.flush(to: pair) { failures.append($0) }
            #expect(result == SendResult(sent: 1, dropped: 2))
            #expect(failures.map(\.peer?.rawValue) == [4, 5])
            #expect(failures.map(\.errno) == [ENETUNREACH, ENETUNREACH])
            #expect(failures.map(\.outcome) == [.dropped, .dropped])
        }
    }

    @Test func aFullBufferDropsAndCountsAndDoesNotWait() throws {
        try inNewNetworkNamespace {
            try withLinkedNamespace(localAddresses: ["10.6.0.1/24"], remoteAddresses: []) { _ in
                var channel = InProcessPrivilegedChannel(PrivilegedService())
                let pair = try channel.openUDPSockets(port: 0, mark: 0)
                let number = pair.descriptorNumber(for: .v4) ?? -1
                // The kernel makes the smallest buffer of this that it allows.
                var size: Int32 = 0
                _ = try systemCall("setsockopt") {
                    unsafe setsockopt(number, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
                }
                var batch = SendBatch(capacity: 64, byteCapacity: 65_536, wantsSegmentation: false)
                // Nobody answers for this address, so the datagrams wait for a neighbour and keep the buffer full.
                for _ in 0..<64 {
                    batch.add(
                        [UInt8](repeating: 0, count: 1_000), to: Endpoint(address: address("10.6.0.99"), port: 1))
                }
                let start = HostClock.now()
                let result = batch.flush(to: pair) { Issue.record("\($0)") }
                #expect(HostClock.now().since(start) < .seconds(1))
                #expect(result.sent > 0)
                #expect(result.bufferFull > 0)
                #expect(result.sent + result.dropped == 64)
                #expect(result.dropped == result.bufferFull)
            }
        }
    }

    /// The address of "address/length".
    private func withoutLength(_ text: String) -> IPAddress {
        address(String(text.prefix(while: { $0 != "/" })))
    }
}
