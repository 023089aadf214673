import IPPacket
import TestSupport
import Testing

struct PacketJoinerPropertyTests {
    /// A train in which most packets follow one another, and any can differ from what would follow in one of many ways.
    static func train(_ generator: inout SeededGenerator) -> [ModelPacket] {
        var train: [ModelPacket] = []
        while train.count < 40 {
            var whole = ModelPacket(isIPv6: .random(using: &generator), isTCP: .random(using: &generator))
            whole.sequence = .random(in: 0...(.max), using: &generator)
            whole.identification = .random(in: 0...(.max), using: &generator)
            whole.fragmentField = Bool.random(using: &generator) ? 0x4000 : 0
            whole.payload = generator.bytes(.random(in: 1...400, using: &generator))
            if Bool.random(using: &generator) { whole.flags |= 0x08 }
            var segments = whole.segments(segmentSize: .random(in: 20...100, using: &generator))
            if Int.random(in: 0..<4, using: &generator) == 0 {
                for index in segments.indices { segments[index].identification = whole.identification }
            }
            train += segments
        }
        train.removeLast(train.count - 40)
        for _ in 0..<Int.random(in: 0...5, using: &generator) {
            let change = PacketJoinerTests.changes.randomElement(using: &generator)
            change?.edit(&train[.random(in: 0..<40, using: &generator)])
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            train.swapAt(.random(in: 0..<40, using: &generator), .random(in: 0..<40, using: &generator))
        }
        return train
    }

    @Test(arguments: 0..<150 as Range<UInt64>)
    func joiningAgreesWithTheRulesAndSplittingTakesItBack(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let train = Self.train(&generator)
        let bytes = train.map { $0.bytes() }
        let limit = Int.random(in: 1...10, using: &generator)
        for maximumSegments in [PacketJoiner.capacity, limit] {
            let joined = JoinedTrain(joining: bytes, maximumSegments: maximumSegments)
            #expect(joined.pieceCounts == referenceJoin(train, maximumSegments: maximumSegments))
            let again = try joined.splitAgain()
            #expect(again.count == bytes.count)
            for (before, after) in zip(bytes, again) where before != after {
                // Only an identification that means nothing may be another.
                #expect(before[0] == 0x45 && before[6] == 0x40)
                #expect(before[..<4] == after[..<4])
                #expect(before[6..<10] == after[6..<10])
                #expect(before[12...] == after[12...])
            }
        }
    }

    @Test(arguments: 0..<100 as Range<UInt64>)
    func splittingAndJoiningAndSplittingIsStable(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var whole = ModelPacket(isIPv6: .random(using: &generator), isTCP: .random(using: &generator))
        whole.payload = generator.bytes(.random(in: 0...6000, using: &generator))
        whole.flags |= [0, 1, 8, 9].randomElement(using: &generator) ?? 0
        let header = whole.virtioHeader(segmentSize: .random(in: 100...1500, using: &generator))
        let segments = try split(whole.partialBytes(), header)
        let joined = JoinedTrain(joining: segments)
        #expect(joined.packets == [whole.partialBytes()] || segments.count == 1)
        #expect(try joined.splitAgain() == segments)
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func hostileBytesNeverTrapAndAreNeverLost(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var bytes = Self.train(&generator).map { $0.bytes() }
        for index in bytes.indices where Bool.random(using: &generator) {
            if Bool.random(using: &generator) {
                bytes[index].removeLast(.random(in: 0...bytes[index].count, using: &generator))
            }
            guard !bytes[index].isEmpty else { continue }
            for _ in 0..<Int.random(in: 0...2, using: &generator) {
                let offset = Int.random(in: 0..<min(60, bytes[index].count), using: &generator)
                bytes[index][offset] ^= .random(in: 1...255, using: &generator)
            }
        }
        let again = try JoinedTrain(joining: bytes).splitAgain()
        #expect(again.map(\.count) == bytes.map(\.count))
    }
}
