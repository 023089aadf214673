import ByteAccess
import IPPacket
import TestSupport
import Testing

struct PacketJoinerTests {
    /// Four segments, the last of them shorter.
    static func train(isIPv6: Bool = false, isTCP: Bool = true) -> [ModelPacket] {
        ModelPacket(isIPv6: isIPv6, isTCP: isTCP, payload: (0..<350).map { UInt8(truncatingIfNeeded: $0) })
            .segments(segmentSize: 100)
    }

    @Test(arguments: [false, true], [false, true])
    func aTrainBecomesTheSuperPacketItWasSplitFrom(isIPv6: Bool, isTCP: Bool) {
        var whole = ModelPacket(isIPv6: isIPv6, isTCP: isTCP, trafficClass: 0x8A, reserved: 1, flags: 0x59)
        for count in [101, 200, 350, 1200] {
            whole.payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 5) }
            let joined = JoinedTrain(joining: whole.segments(segmentSize: 100).map { $0.bytes() })
            #expect(joined.packets == [whole.partialBytes()])
            #expect(joined.headers == [whole.virtioHeader(segmentSize: 100)])
        }
    }

    @Test(arguments: [false, true], [false, true])
    func whatIsSwitchedOffStaysAlone(isIPv6: Bool, isTCP: Bool) {
        let train = Self.train(isIPv6: isIPv6, isTCP: isTCP).map { $0.bytes() }
        for (joinsTCP, joinsUDP) in [(true, false), (false, true), (false, false)] {
            let joined = JoinedTrain(joining: train, joinsTCP: joinsTCP, joinsUDP: joinsUDP)
            if isTCP ? joinsTCP : joinsUDP {
                #expect(joined.pieceCounts == [4])
            } else {
                #expect(joined.packets == train)
                #expect(joined.headers.allSatisfy { $0 == VirtioNetworkHeader() })
            }
        }
    }

    @Test func noMorePacketsAreJoinedThanAllowed() {
        let train = ModelPacket(payload: [UInt8](repeating: 1, count: 100)).segments(segmentSize: 1).map { $0.bytes() }
        #expect(JoinedTrain(joining: train).pieceCounts == [100])
        #expect(JoinedTrain(joining: train, maximumSegments: 44).pieceCounts == [44, 44, 12])
        #expect(JoinedTrain(joining: train, maximumSegments: 1).packets == train)
        let datagrams = ModelPacket(isTCP: false, payload: [UInt8](repeating: 1, count: 100)).segments(segmentSize: 1)
        #expect(JoinedTrain(joining: datagrams.map { $0.bytes() }).pieceCounts == [64, 36])
    }

    @Test(arguments: [false, true], [false, true])
    func noSuperPacketIsLongerThanItsLengthFieldsHold(isIPv6: Bool, isTCP: Bool) {
        var whole = ModelPacket(isIPv6: isIPv6, isTCP: isTCP)
        for excess in [0, 1] {
            whole.payload = [UInt8](repeating: 5, count: 65_535 - whole.headersLength + excess)
            let train = whole.segments(segmentSize: 8_000)
            let joined = JoinedTrain(joining: train.map { $0.bytes() })
            #expect(joined.pieceCounts == (excess == 0 ? [9] : [8, 1]))
        }
    }

    /// A change to the third of four packets, and how many packets are then joined.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let isIPv6: Bool
        let isTCP: Bool
        let counts: [Int]
        let edit: @Sendable (inout ModelPacket) -> Void

        init(
            _ name: String, isIPv6: Bool = false, isTCP: Bool = true, _ counts: [Int] = [2, 1, 1],
            edit: @escaping @Sendable (inout ModelPacket) -> Void
        ) {
            testDescription = name
            self.isIPv6 = isIPv6
            self.isTCP = isTCP
            self.counts = counts
            self.edit = edit
        }
    }

    static let changes: [Change] = [
        Change("none", [4]) { _ in },
        Change("source", [2, 1, 1]) { $0.source = 9 },
        Change("destination") { $0.destination = 9 },
        Change("source over IPv6", isIPv6: true) { $0.source = 9 },
        Change("destination over IPv6", isIPv6: true) { $0.destination = 9 },
        Change("source port") { $0.sourcePort = 9 },
        Change("destination port") { $0.destinationPort = 9 },
        Change("source port of UDP", isTCP: false) { $0.sourcePort = 9 },
        Change("destination port of UDP", isTCP: false) { $0.destinationPort = 9 },
        Change("protocol") { $0.isTCP = false },
        Change("version") { $0.isIPv6 = true },
        Change("time to live") { $0.hopLimit = 63 },
        Change("hop limit", isIPv6: true) { $0.hopLimit = 63 },
        Change("DSCP") { $0.trafficClass = 0x88 },
        Change("ECN") { $0.trafficClass = 3 },
        Change("ECN over IPv6", isIPv6: true) { $0.trafficClass = 3 },
        Change("DSCP over IPv6", isIPv6: true) { $0.trafficClass = 0x88 },
        Change("flow label", isIPv6: true) { $0.flowLabel = 1 },
        Change("DF") { $0.fragmentField = 0 },
        Change("reserved bit of IPv4") { $0.fragmentField = 0xC000 },
        Change("first fragment") { $0.fragmentField = 0x2000 },
        Change("later fragment") { $0.fragmentField = 0x0005 },
        Change("skipped identification") { $0.identification &+= 5 },
        Change("repeated identification") { $0.identification &-= 1 },
        Change("identification of the first") { $0.identification &-= 2 },
        Change("IPv4 options") { $0.ipOptions = [1, 1, 1, 1] },
        Change("extension header", isIPv6: true) { $0.extensionHeaders = [SuperPacketTests.options] },
        Change("sequence ahead") { $0.sequence &+= 1 },
        Change("sequence behind") { $0.sequence &-= 100 },
        Change("acknowledgment") { $0.acknowledgment &+= 1 },
        Change("window") { $0.window += 1 },
        Change("urgent pointer") { $0.urgentPointer = 1 },
        Change("reserved bits of TCP") { $0.reserved = 1 },
        Change("option value") { $0.tcpOptions = $0.tcpOptions.map { $0 &+ 1 } },
        Change("option count") { $0.tcpOptions += [1, 1, 1, 1] },
        Change("no options") { $0.tcpOptions = [] },
        Change("PSH", [3, 1]) { $0.flags |= 0x08 },
        Change("FIN", [3, 1]) { $0.flags |= 0x01 },
        Change("FIN and PSH", [3, 1]) { $0.flags |= 0x09 },
        Change("SYN") { $0.flags |= 0x02 },
        Change("RST") { $0.flags |= 0x04 },
        Change("no ACK") { $0.flags &= ~0x10 },
        Change("URG") { $0.flags |= 0x20 },
        Change("ECE") { $0.flags |= 0x40 },
        Change("CWR") { $0.flags |= 0x80 },
        Change("shorter", [3, 1]) { $0.payload = $0.payload.dropLast() },
        Change("longer") { $0.payload.append(1) },
        Change("no payload") { $0.payload = [] },
        Change("padding") { $0.padding = 4 },
        Change("wrong TCP checksum") { $0.flaw = .wrongTransportChecksum },
        Change("wrong IPv4 checksum") { $0.flaw = .wrongHeaderChecksum },
        Change("wrong TCP checksum over IPv6", isIPv6: true) { $0.flaw = .wrongTransportChecksum },
        Change("wrong UDP checksum", isTCP: false) { $0.flaw = .wrongTransportChecksum },
        Change("wrong IPv4 checksum for UDP", isTCP: false) { $0.flaw = .wrongHeaderChecksum },
        Change("no UDP checksum", isTCP: false) { $0.flaw = .noTransportChecksum },
        Change("no UDP checksum over IPv6", isIPv6: true, isTCP: false) { $0.flaw = .noTransportChecksum },
        Change("shorter datagram", isTCP: false, [3, 1]) { $0.payload = $0.payload.dropLast() },
        // It is the first of another train, whose last packet is shorter.
        Change("longer datagram", isTCP: false, [2, 2]) { $0.payload.append(1) },
        Change("empty datagram", isTCP: false) { $0.payload = [] },
        Change("no options of UDP", isTCP: false, [4]) { $0.tcpOptions = [] },
    ]

    @Test(arguments: changes)
    func onlyWhatFollowsIsJoined(change: Change) throws {
        var train = Self.train(isIPv6: change.isIPv6, isTCP: change.isTCP)
        change.edit(&train[2])
        let bytes = train.map { $0.bytes() }
        let joined = JoinedTrain(joining: bytes)
        #expect(joined.pieceCounts == change.counts)
        #expect(try joined.splitAgain() == bytes)
        #expect(referenceJoin(train) == change.counts)
    }

    @Test(arguments: changes)
    func aPacketThatCannotBeFollowedStaysAlone(change: Change) throws {
        var train = Self.train(isIPv6: change.isIPv6, isTCP: change.isTCP)
        change.edit(&train[0])
        let bytes = train.map { $0.bytes() }
        let joined = JoinedTrain(joining: bytes)
        #expect(joined.pieceCounts == referenceJoin(train))
        #expect(try joined.splitAgain() == bytes)
    }

    @Test func aPacketWithAWrongChecksumIsPassedOnUnchangedAndUnverified() {
        for index in 0..<4 {
            var train = Self.train()
            train[index].flaw = .wrongTransportChecksum
            let joined = JoinedTrain(joining: train.map { $0.bytes() })
            let place = joined.packets.firstIndex(of: train[index].bytes())
            #expect(place.map { joined.headers[$0] } == VirtioNetworkHeader())
        }
    }

    @Test func onlyAVerifiedPacketThatStaysAloneIsMarkedValid() {
        var train = Self.train()
        // The first is verified when the second seems to follow, and then found to be wrong.
        train[1].flaw = .wrongTransportChecksum
        let joined = JoinedTrain(joining: train.map { $0.bytes() })
        #expect(joined.headers.map(\.flags) == [.dataValid, [], .needsChecksum])
    }

    @Test func identificationsThatStayTheSameAreJoinedOnlyWithDF() throws {
        var train = Self.train()
        for index in train.indices { train[index].identification = 0 }
        let joined = JoinedTrain(joining: train.map { $0.bytes() })
        #expect(joined.pieceCounts == [4])
        // Splitting numbers them, which is all that changes.
        for index in train.indices { train[index].identification = UInt16(index) }
        #expect(try joined.splitAgain() == train.map { $0.bytes() })
        for index in train.indices { (train[index].identification, train[index].fragmentField) = (0, 0) }
        #expect(JoinedTrain(joining: train.map { $0.bytes() }).pieceCounts == [1, 1, 1, 1])
        for index in train.indices { train[index].identification = UInt16(index) }
        #expect(JoinedTrain(joining: train.map { $0.bytes() }).pieceCounts == [4])
    }

    @Test func checksumsThatSplittingWouldWriteOtherwiseAreNotJoined() {
        // The checksum of the second segment is zero, or all ones, which means the same.
        var whole = ModelPacket(payload: [1, 2, 0, 0, 5, 6])
        let second = whole.segments(segmentSize: 2)[1].bytes()
        whole.payload.replaceSubrange(2..<4, with: second[36..<38])
        var train = whole.segments(segmentSize: 2)
        #expect(train[1].bytes()[36..<38] == [0, 0])
        #expect(JoinedTrain(joining: train.map { $0.bytes() }).pieceCounts == [3])
        train[1].flaw = .allOnesTransportChecksum
        #expect(JoinedTrain(joining: train.map { $0.bytes() }).pieceCounts == [1, 1, 1])
    }

    @Test func flowsThatTakeTurnsAreNotReordered() {
        let first = Self.train()
        var second = first
        for index in second.indices { second[index].sourcePort = 1 }
        let train = [first[0], first[1], second[0], second[1], first[2], second[2], first[3]]
        let joined = JoinedTrain(joining: train.map { $0.bytes() })
        #expect(joined.pieceCounts == [2, 2, 1, 1, 1])
    }

    @Test func anotherTrainStartsFromNothing() {
        var joiner = PacketJoiner()
        let train = Self.train().map { $0.bytes() }
        _ = JoinedTrain(joining: Array(train[..<2]), with: &joiner)
        let joined = JoinedTrain(joining: Array(train[2...]), with: &joiner)
        #expect(joined.pieceCounts == [2])
        let remaining = joiner.remainingCapacity
        #expect(remaining == 126)
    }

    @Test func aFullJoinerSaysSo() {
        var joiner = PacketJoiner()
        let whole = ModelPacket(payload: [UInt8](repeating: 1, count: 128))
        _ = JoinedTrain(joining: whole.segments(segmentSize: 1).map { $0.bytes() }, with: &joiner)
        let (isFull, count) = (joiner.isFull, joiner.count)
        #expect(isFull && count == 1)
        joiner.removeAll()
        let (isFullAfterwards, countAfterwards) = (joiner.isFull, joiner.count)
        #expect(!isFullAfterwards && countAfterwards == 0)
    }
}
