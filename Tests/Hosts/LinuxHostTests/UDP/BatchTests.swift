import ByteAccess
import CLinux
import Glibc
import IPPacket
import Provider
import TestSupport
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct BatchTests {
    @Test(arguments: ["127.0.0.1", "::1"])
    func aBatchArrivesInOrderWithSourceAndTrafficClass(text: String) throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let family = AddressFamily(of: address(text))
            let left = try channel.openUDPSockets(port: 0, mark: 0)
            let right = try channel.openUDPSockets(port: 0, mark: 0)
            var batch = SendBatch(capacity: 32, byteCapacity: 65_536)
            let remote = Endpoint(address: address(text), port: right.port)
            for index in 0..<32 {
                batch.add(
                    [UInt8](repeating: UInt8(index), count: index * 7), to: remote, trafficClass: UInt8(index * 5))
            }
            #expect(batch.unusedCount == 0)
            let result = batch.flush(to: left) { Issue.record("\($0)") }
            #expect(result == SendResult(sent: 32))
            #expect(batch.unusedCount == 32)
            #expect(batch.unusedByteCount == 65_536)

            // A smaller batch takes them in several calls.
            var received = ReceiveBatch(capacity: 10)
            var index = 0
            while index < 32 {
                try awaitReady(right.descriptorNumber(for: family) ?? -1, "datagram \(index)")
                for position in 0..<(try received.receive(from: right, family)) {
                    let datagram = received.datagram(at: position)
                    #expect(
                        datagram
                            == ReceivedDatagram(
                                length: index * 7,
                                path: Path(
                                    remote: Endpoint(address: address(text), port: left.port),
                                    source: LocalSource(
                                        address: address(text), interfaceIndex: interfaceIndex("lo"))),
                                trafficClass: UInt8(index * 5), segmentSize: 0))
                    let bytes = received.bytes(at: position)
                    #expect(Array(bytes.bytes) == [UInt8](repeating: UInt8(index), count: index * 7))
                    index += 1
                }
            }
            let more = try received.receive(from: right, family)
            #expect(more == 0)
        }
    }

    @Test func familiesMixInOneBatchAndATrainArrivesAsDatagrams() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
            var batch = SendBatch(capacity: 16, byteCapacity: 4_096)
            let v4 = Endpoint(address: address("127.0.0.1"), port: 51_820)
            let v6 = Endpoint(address: address("::1"), port: 51_820)
            batch.add([1], to: v4)
            batch.add([2], to: v6)
            do {
                var free = batch.unusedBytes()
                for offset in 0..<32 { free.store(UInt8(100 + offset), at: offset) }
            }
            // Three datagrams of 10, 10 and 4 bytes, behind a gap of 8.
            batch.append(
                MessageTrain(offset: 8, count: 3, stride: 10, lastLength: 4),
                Transmission(peer: nil, path: Path(remote: v4), trafficClass: 0))
            batch.add([3], to: v6)
            batch.add([4], to: v4)
            #expect(batch.count == 7)
            #expect(batch.unusedByteCount == 4_096 - 2 - 32 - 2)
            let result = batch.flush(to: pair) { Issue.record("\($0)") }
            #expect(result == SendResult(sent: 7, sentInTrains: 3))

            var received = ReceiveBatch(capacity: 16)
            _ = try received.waitForOne(from: pair, .v4)
            #expect(received.count == 5)
            let expected: [[UInt8]] = [[1], Array(108..<118), Array(118..<128), Array(128..<132), [4]]
            for index in 0..<received.count {
                let bytes = received.bytes(at: index)
                #expect(Array(bytes.bytes) == expected[index])
            }
            _ = try received.waitForOne(from: pair, .v6)
            #expect(received.count == 2)
        }
    }

    @Test(arguments: [("127.0.0.1", 65_507), ("::1", 65_527)])
    func theLongestDatagramPasses(text: String, length: Int) throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
            var batch = SendBatch(capacity: 2, byteCapacity: 131_072)
            let remote = Endpoint(address: address(text), port: 51_820)
            let content = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            batch.add(content, to: remote)
            // One byte more is refused, told, and in nobody's way.
            batch.add([UInt8](repeating: 0, count: length + 1), to: remote, peer: 9)
            var failures: [SendFailure] = []
            let result = batch.flush(to: pair) { failures.append($0) }
            #expect(result == SendResult(sent: 1, dropped: 1))
            #expect(
                failures == [
                    SendFailure(
                        peer: PeerIndex(rawValue: 9), path: Path(remote: remote), errno: EMSGSIZE, outcome: .dropped)
                ])
            var received = ReceiveBatch(capacity: 2)
            let datagram = try received.waitForOne(from: pair, AddressFamily(of: remote.address))
            #expect(datagram.length == length)
            let bytes = received.bytes(at: 0)
            #expect(Array(bytes.bytes) == content)
        }
    }

    @Test func bytesAreChangedInPlace() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
            var batch = SendBatch(capacity: 1, byteCapacity: 16)
            batch.add([1, 2, 3], to: Endpoint(address: address("127.0.0.1"), port: 51_820))
            _ = batch.flush(to: pair) { Issue.record("\($0)") }
            var received = ReceiveBatch(capacity: 1)
            _ = try received.waitForOne(from: pair, .v4)
            do {
                var bytes = received.bytes(at: 0)
                bytes.store(9, at: 1)
            }
            let bytes = received.bytes(at: 0)
            #expect(Array(bytes.bytes) == [1, 9, 3])
        }
    }

    @Test func anUnreachablePeerDoesNotEndReceiving() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
            var batch = SendBatch(capacity: 2, byteCapacity: 16)
            // Nobody listens there: the kernel answers with ICMP port unreachable.
            batch.add([1], to: Endpoint(address: address("127.0.0.1"), port: 9))
            batch.add([2], to: Endpoint(address: address("127.0.0.1"), port: 51_820))
            let result = batch.flush(to: pair) { Issue.record("\($0)") }
            #expect(result.sent == 2)
            var received = ReceiveBatch(capacity: 2)
            let length = try received.waitForOne(from: pair, .v4).length
            #expect(length == 1)
        }
    }

    @Test func aMissingFamilyIsADropThatIsTold() throws {
        let pair = UDPSocketPair(v4: nil, v6: nil, port: 0)
        var batch = SendBatch(capacity: 2, byteCapacity: 16)
        batch.add([1], to: Endpoint(address: address("127.0.0.1"), port: 51_820), peer: 3)
        var failures: [SendFailure] = []
        let result = batch.flush(to: pair) { failures.append($0) }
        #expect(result == SendResult(sent: 0, dropped: 1))
        #expect(failures.map(\.errno) == [EAFNOSUPPORT])
        #expect(batch.count == 0)
    }
}
