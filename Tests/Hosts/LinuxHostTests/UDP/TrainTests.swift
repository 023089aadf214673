import Glibc
import IPPacket
import Testing
import WireGuard

@testable import LinuxHost

/// Trains through the kernel: how they leave, what comes of them, and what is told about it.
@Suite struct TrainTests {
    @Test(arguments: ["127.0.0.1", "::1"])
    func aTrainArrivesAsItsDatagramsWhereNobodyAskedForTrains(text: String) throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let sender = try channel.openUDPSockets(port: 40_001, mark: 0)
            let receiver = try channel.openUDPSockets(port: 40_002, mark: 0)
            let receivesTrains = receiver.receivesTrains
            #expect(!receivesTrains)
            var batch = SendBatch(capacity: 4, byteCapacity: 65_536)
            batch.addTrain(
                of: 10, length: 1_000, lastLength: 77, to: Endpoint(address: address(text), port: 40_002),
                trafficClass: 0x02)
            #expect(batch.flush(to: sender) { Issue.record("\($0)") } == SendResult(sent: 10, sentInTrains: 10))
            let arrived = try arrivals(10, at: receiver, AddressFamily(of: address(text)))
            #expect(
                arrived
                    == (0..<10).map {
                        Arrival(
                            bytes: datagram($0, length: $0 == 9 ? 77 : 1_000), path: loopbackPath(text),
                            trafficClass: 0x02, trainCount: 1)
                    })
        }
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func aTrainArrivesWholeWithItsSourceAndTrafficClassWhereTrainsAreWanted(text: String) throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let sender = try channel.openUDPSockets(port: 40_001, mark: 0)
            let receiver = try channel.openUDPSockets(port: 40_002, mark: 0, wantsTrains: true)
            let receivesTrains = receiver.receivesTrains
            #expect(receivesTrains)
            let remote = Endpoint(address: address(text), port: 40_002)
            var batch = SendBatch(capacity: 8, byteCapacity: 262_144)
            batch.addTrain(of: 44, length: 1_456, lastLength: 100, to: remote, trafficClass: 0x01)
            // A datagram without company, and a train that differs in nothing but its congestion bits.
            batch.addTrain(of: 1, length: 1_456, from: 44, to: remote)
            batch.addTrain(of: 5, length: 1_456, from: 45, to: remote, trafficClass: 0x03)
            #expect(batch.flush(to: sender) { Issue.record("\($0)") } == SendResult(sent: 50, sentInTrains: 49))
            let arrived = try arrivals(50, at: receiver, AddressFamily(of: remote.address))
            #expect(
                arrived
                    == (0..<50).map {
                        Arrival(
                            bytes: datagram($0, length: $0 == 43 ? 100 : 1_456), path: loopbackPath(text),
                            trafficClass: $0 < 44 ? 0x01 : $0 == 44 ? 0 : 0x03,
                            trainCount: $0 < 44 ? 44 : $0 == 44 ? 1 : 5)
                    })
        }
    }

    @Test(arguments: [("127.0.0.1", 1_456, 200), ("::1", 1_456, 200), ("127.0.0.1", 64, 500), ("::1", 9_000, 30)])
    func aTrainOfAnyLengthLeavesInMessagesThatTheKernelTakes(text: String, length: Int, count: Int) throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let sender = try channel.openUDPSockets(port: 40_001, mark: 0)
            let receiver = try channel.openUDPSockets(port: 40_002, mark: 0, wantsTrains: true)
            let remote = Endpoint(address: address(text), port: 40_002)
            var batch = SendBatch(capacity: 2, byteCapacity: length * count)
            batch.addTrain(of: count, length: length, to: remote)
            let whole = min(64, 65_400 / length)
            let remainder = count % whole == 1 ? 1 : 0
            #expect(
                batch.flush(to: sender) { Issue.record("\($0)") }
                    == SendResult(sent: count, sentInTrains: count - remainder, sentSingly: remainder))
            // Few slots: what does not fit one call comes with the next.
            let arrived = try arrivals(count, at: receiver, AddressFamily(of: remote.address), limit: 2)
            #expect(arrived.map(\.bytes) == (0..<count).map { datagram($0, length: length) })
            #expect(arrived.map(\.trainCount).max() == whole)
        }
    }

    @Test func datagramsThatFollowOneAnotherBecomeATrain() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let sender = try channel.openUDPSockets(port: 40_001, mark: 0)
            let receiver = try channel.openUDPSockets(port: 40_002, mark: 0, wantsTrains: true)
            let remote = Endpoint(address: address("127.0.0.1"), port: 40_002)
            let elsewhere = Endpoint(address: address("127.0.0.2"), port: 40_002)
            var batch = SendBatch(capacity: 16, byteCapacity: 65_536)
            // Ten of a length and a shorter one that ends the train; a longer one begins the next; then another address,
            // another class and another peer.
            for index in 0..<10 { batch.addTrain(of: 1, length: 96, from: index, to: remote) }
            batch.addTrain(of: 1, length: 40, from: 10, to: remote)
            for index in 11..<13 { batch.addTrain(of: 1, length: 200, from: index, to: remote) }
            for index in 13..<15 { batch.addTrain(of: 1, length: 200, from: index, to: elsewhere) }
            batch.addTrain(of: 1, length: 200, from: 15, to: remote, trafficClass: 0x88)
            batch.addTrain(of: 1, length: 200, from: 16, to: remote, trafficClass: 0x88, peer: 1)
            #expect(batch.trainCount == 5)
            #expect(batch.count == 17)
            #expect(batch.flush(to: sender) { Issue.record("\($0)") } == SendResult(sent: 17, sentInTrains: 15))
            let arrived = try arrivals(17, at: receiver, .v4)
            #expect(
                arrived.map(\.bytes)
                    == (0..<17).map { datagram($0, length: $0 < 10 ? 96 : $0 == 10 ? 40 : 200) })
            #expect(
                arrived.map(\.trainCount)
                    == [Int](repeating: 11, count: 11) + [2, 2, 2, 2, 1, 1])
        }
    }

    @Test func trainsThatDoNotFitOneMessageTogetherStayApart() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let sender = try channel.openUDPSockets(port: 40_001, mark: 0)
            let receiver = try channel.openUDPSockets(port: 40_002, mark: 0, wantsTrains: true)
            let remote = Endpoint(address: address("127.0.0.1"), port: 40_002)
            var batch = SendBatch(capacity: 8, byteCapacity: 262_144)
            // Too many bytes, then too many datagrams. A receiver that joins packets wants the trains as they were sealed.
            for index in 0..<2 { batch.addTrain(of: 43, length: 1_452, from: index * 43, to: remote) }
            for index in 0..<2 { batch.addTrain(of: 40, length: 96, from: 86 + index * 40, to: remote) }
            #expect(batch.flush(to: sender) { Issue.record("\($0)") } == SendResult(sent: 166, sentInTrains: 166))
            let arrived = try arrivals(166, at: receiver, .v4)
            #expect(
                arrived.map(\.trainCount)
                    == [Int](repeating: 43, count: 86) + [Int](repeating: 40, count: 80))
        }
    }

    @Test func withoutSegmentationEveryDatagramIsAMessage() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let sender = try channel.openUDPSockets(port: 40_001, mark: 0)
            let receiver = try channel.openUDPSockets(port: 40_002, mark: 0, wantsTrains: true)
            var batch = SendBatch(capacity: 4, byteCapacity: 262_144, wantsSegmentation: false)
            #expect(batch.segmentation(.v4) == .notWanted)
            // More than one call takes.
            batch.addTrain(of: 150, length: 1_456, to: Endpoint(address: address("127.0.0.1"), port: 40_002))
            #expect(batch.flush(to: sender) { Issue.record("\($0)") } == SendResult(sent: 150, sentSingly: 150))
            let arrived = try arrivals(150, at: receiver, .v4)
            #expect(arrived.map(\.bytes) == (0..<150).map { datagram($0, length: 1_456) })
        }
    }

    @Test func aTrainOfTwoPeersToOneFamilyThatIsMissingIsDroppedAndTold() throws {
        let pair = UDPSocketPair(v4: nil, v6: nil, port: 0)
        var batch = SendBatch(capacity: 2, byteCapacity: 4_096)
        let remote = Endpoint(address: address("127.0.0.1"), port: 51_820)
        batch.addTrain(of: 3, length: 100, to: remote, peer: 3)
        batch.addTrain(of: 2, length: 100, to: remote, peer: 4)
        var failures: [SendFailure] = []
        #expect(batch.flush(to: pair) { failures.append($0) } == SendResult(dropped: 5))
        #expect(failures.map(\.peer?.rawValue) == [3, 4])
        #expect(batch.count == 0)
    }

    private func loopbackPath(_ text: String) -> Path {
        Path(
            remote: Endpoint(address: address(text), port: 40_001),
            source: LocalSource(address: address(text), interfaceIndex: interfaceIndex("lo")))
    }
}
