import Glibc
import IPPacket
import Provider
import Testing
import WireGuard

@testable import LinuxHost

/// What becomes of trains that the way out does not take.
@Suite struct TrainFallbackTests {
    @Test(arguments: ["10.6.0.2", "fd00:6::2"])
    func aDeviceWithoutChecksumsCostsNoDatagram(text: String) throws {
        try withWay { near, far, _ in
            try run("ethtool", "-K", "slt-near", "tx", "off")
            let remote = Endpoint(address: address(text), port: 40_002)
            var batch = SendBatch(capacity: 4, byteCapacity: 262_144)
            batch.addTrain(of: 100, length: 1_400, to: remote)
            let result = batch.flush(to: near) { Issue.record("\($0)") }
            // Linux before 6.11 refuses with EIO; later ones finish the checksums themselves.
            #expect(result.sent == 100)
            #expect(result.sentInTrains + result.sentSingly == 100)
            let arrived = try arrivals(100, at: far, AddressFamily(of: remote.address))
            #expect(arrived.map(\.bytes) == (0..<100).map { datagram($0, length: 1_400) })
        }
    }

    @Test(arguments: ["10.6.0.2", "fd00:6::2"])
    func aKernelThatCannotFinishChecksumsEndsTrainsForThatSocketOnly(text: String) throws {
        // The kernel here never answers EIO. A system-call filter does in its place, when one message is sent at a time: on a
        // thread of its own, which ends with the test.
        try onThreadOfItsOwn {
            try withWay { near, far, channel in
                let remote = Endpoint(address: address(text), port: 40_002)
                let family = AddressFamily(of: remote.address)
                let again = try channel.openUDPSockets(port: 0, mark: 0)
                var batch = SendBatch(capacity: 4, byteCapacity: 65_536)
                try refuseSending(messages: 1, with: EIO)
                batch.addTrain(of: 40, length: 1_400, to: remote)
                let first = batch.flush(to: near) { Issue.record("\($0)") }
                #expect(first == SendResult(sent: 40, sentSingly: 40))
                let arrived = try arrivals(40, at: far, family)
                #expect(arrived.map(\.bytes) == (0..<40).map { datagram($0, length: 1_400) })
                #expect(batch.segmentation(family) == .refused(errno: EIO))
                #expect(batch.segmentation(family == .v4 ? .v6 : .v4) == .on)
                #expect(batch.restrictedDestinationCount == 0)
                // It stays so for this socket; another is tried anew.
                batch.addTrain(of: 3, length: 100, to: remote)
                batch.addTrain(of: 2, length: 200, to: remote)
                let second = batch.flush(to: near) { Issue.record("\($0)") }
                #expect(second == SendResult(sent: 5, sentSingly: 5))
                batch.addTrain(of: 3, length: 100, to: remote)
                batch.addTrain(of: 2, length: 200, to: remote)
                let third = batch.flush(to: again) { Issue.record("\($0)") }
                #expect(third == SendResult(sent: 5, sentInTrains: 5))
                #expect(batch.segmentation(family) == .on)
            }
        }
    }

    @Test(arguments: [("10.6.0.2", "10.6.0.3"), ("fd00:6::2", "fd00:6::3")])
    func aNarrowRouteEndsTrainsOfThatLengthToThatDestinationForAMinute(text: String, otherText: String) throws {
        try withWay { near, far, _ in
            let remote = Endpoint(address: address(text), port: 40_002)
            let other = Endpoint(address: address(otherText), port: 40_002)
            let family = AddressFamily(of: remote.address)
            try run("ip", "route", "add", text, "dev", "slt-near", "mtu", "1280")
            var batch = SendBatch(capacity: 8, byteCapacity: 524_288)
            let start = HostClock.now()
            try send(
                100, 1_452, to: remote, at: start, &batch, from: near, arrivingAt: far,
                SendResult(sent: 100, sentSingly: 100))
            #expect(batch.restrictedDestinationCount == 1)
            #expect(batch.segmentation(family) == .on)
            try send(
                10, 1_452, to: remote, at: start, &batch, from: near, arrivingAt: far,
                SendResult(sent: 10, sentSingly: 10))
            // Shorter ones pass, and another destination is another matter.
            try send(
                10, 1_200, to: remote, at: start, &batch, from: near, arrivingAt: far,
                SendResult(sent: 10, sentInTrains: 10))
            try send(
                10, 1_452, to: other, at: start, &batch, from: near, arrivingAt: far,
                SendResult(sent: 10, sentInTrains: 10))
            // The route widens, which shows when the minute is over.
            try run("ip", "route", "del", text, "dev", "slt-near")
            try send(
                10, 1_452, to: remote, at: start + .seconds(59), &batch, from: near, arrivingAt: far,
                SendResult(sent: 10, sentSingly: 10))
            try send(
                10, 1_452, to: remote, at: start + .seconds(60), &batch, from: near, arrivingAt: far,
                SendResult(sent: 10, sentInTrains: 10))
            #expect(batch.restrictedDestinationCount == 0)
        }
    }

    @Test(arguments: ["10.6.0.2", "fd00:6::2"])
    func aNarrowDeviceIsWorthNoDatagram(text: String) throws {
        try withWay { near, far, _ in
            try run("ip", "link", "set", "slt-near", "mtu", "1280")
            let remote = Endpoint(address: address(text), port: 40_002)
            var batch = SendBatch(capacity: 8, byteCapacity: 262_144)
            // In the middle of what does pass.
            batch.addTrain(of: 10, length: 500, to: remote)
            batch.addTrain(of: 50, length: 1_456, lastLength: 12, from: 10, to: remote)
            batch.addTrain(of: 10, length: 600, from: 60, to: remote)
            #expect(
                batch.flush(to: near) { Issue.record("\($0)") }
                    == SendResult(sent: 70, sentInTrains: 20, sentSingly: 50))
            let arrived = try arrivals(70, at: far, AddressFamily(of: remote.address))
            #expect(
                arrived.map(\.bytes)
                    == (0..<70).map {
                        datagram($0, length: $0 < 10 ? 500 : $0 < 59 ? 1_456 : $0 == 59 ? 12 : 600)
                    })
        }
    }

    @Test func limitsAreBoundedAndForgotten() {
        var limits = PathSegmentLimits()
        let start = Instant(nanoseconds: 1_000_000_000)
        func allows(_ length: Int, to address: IPAddress, at now: Instant) -> Bool {
            limits.allows(length, to: address, at: now)
        }
        func count() -> Int { limits.count }
        func destination(_ number: Int) -> IPAddress { address("192.0.2.\(number)") }
        #expect(allows(.max, to: destination(0), at: start))
        for number in 0..<PathSegmentLimits.capacity {
            limits.refuse(1_400, to: destination(number), at: start + .seconds(UInt64(number)))
        }
        #expect(count() == PathSegmentLimits.capacity)
        #expect(allows(1_399, to: destination(0), at: start))
        #expect(!allows(1_400, to: destination(0), at: start))
        // A shorter one that fails counts; a longer one is no news, but keeps the entry.
        limits.refuse(1_300, to: destination(0), at: start + .seconds(20))
        limits.refuse(1_500, to: destination(0), at: start + .seconds(21))
        #expect(!allows(1_300, to: destination(0), at: start + .seconds(21)))
        #expect(count() == PathSegmentLimits.capacity)
        // The oldest makes place.
        limits.refuse(1_400, to: destination(99), at: start + .seconds(22))
        #expect(count() == PathSegmentLimits.capacity)
        #expect(allows(1_400, to: destination(1), at: start + .seconds(22)))
        #expect(!allows(1_400, to: destination(2), at: start + .seconds(22)))
        #expect(!allows(1_400, to: destination(99), at: start + .seconds(22)))
        limits.forget(destination(99))
        #expect(allows(1_400, to: destination(99), at: start + .seconds(22)))
        #expect(count() == PathSegmentLimits.capacity - 1)
        #expect(allows(1_400, to: destination(0), at: start + .seconds(81)))
        #expect(count() == 0)
    }

    /// Sends a train at a time, and checks what became of it and what arrived.
    private func send(
        _ count: Int, _ length: Int, to remote: Endpoint, at now: Instant, _ batch: inout SendBatch,
        from near: borrowing UDPSocketPair, arrivingAt far: borrowing UDPSocketPair, _ expected: SendResult
    ) throws {
        batch.addTrain(of: count, length: length, to: remote)
        let result = batch.flush(to: near, at: now) { Issue.record("\($0)") }
        #expect(result == expected)
        let arrived = try arrivals(count, at: far, AddressFamily(of: remote.address))
        #expect(arrived.map(\.bytes) == (0..<count).map { datagram($0, length: length) })
    }

    /// A pair of sockets on each end of a link: the near one sends, the far one hears on port 40,002 of two addresses of each
    /// family.
    private func withWay(
        _ body: (borrowing UDPSocketPair, borrowing UDPSocketPair, inout InProcessPrivilegedChannel) throws -> Void
    ) throws {
        try inNewNetworkNamespace {
            try withLinkedNamespace(
                localAddresses: ["10.6.0.1/24", "fd00:6::1/64"],
                remoteAddresses: ["10.6.0.2/24", "10.6.0.3/24", "fd00:6::2/64", "fd00:6::3/64"]
            ) { other in
                var channel = InProcessPrivilegedChannel(PrivilegedService())
                let near = try channel.openUDPSockets(port: 40_001, mark: 0)
                let far = try inNetworkNamespace(other) {
                    try channel.openUDPSockets(port: 40_002, mark: 0, wantsTrains: true)
                }
                try body(near, far, &channel)
            }
        }
    }
}
