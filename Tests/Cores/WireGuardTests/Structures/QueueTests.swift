import ByteAccess
import IPPacket
import Provider
import TestSupport
import Testing

@testable import WireGuard

@Suite("Bounded queues")
struct QueueTests {
    @Test(
        "X5: staged packets come out first in, first out, the oldest lost beyond 128",
        arguments: 1...5 as ClosedRange<UInt64>)
    func stagedPackets(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var staged = StagedPackets()
        var reference: [[UInt8]] = []
        for _ in 0..<5000 {
            switch Int.random(in: 0..<20, using: &generator) {
            case 0:
                #expect(staged.removeAll() == reference.count)
                reference = []
            case 1..<7:
                let expected = reference.isEmpty ? nil : reference.removeFirst()
                #expect(staged.takeFirst() == expected)
            default:
                let packet = generator.bytes(Int.random(in: 0..<50, using: &generator))
                let dropped = staged.append(length: packet.count) { $0.copy(packet.octets, to: 0) }
                reference.append(packet)
                #expect(dropped == max(0, reference.count - 128))
                if reference.count > 128 { reference.removeFirst() }
            }
            #expect(staged.count == reference.count)
            #expect(staged.byteCount == reference.map(\.count).reduce(0, +))
        }
    }

    @Test(
        "C7: queued handshakes come out first in, first out, no more than 4,096 of them",
        arguments: 1...3 as ClosedRange<UInt64>)
    func handshakeQueue(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = HandshakeQueue()
        var reference: [UInt16] = []
        var number: UInt16 = 0
        let message = [UInt8](repeating: 1, count: 92)
        for step in 0..<30_000 {
            // Long times of filling and of emptying.
            if Int.random(in: 0..<10, using: &generator) < (step / 7000 % 2 == 0 ? 8 : 2) {
                number &+= 1
                let path = Path(remote: Endpoint(address: .v4(.unspecified), port: number))
                let isTaken = queue.append(message.octets, from: path)
                #expect(isTaken == (reference.count < 4096))
                if isTaken { reference.append(number) }
            } else {
                let expected = reference.isEmpty ? nil : reference.removeFirst()
                #expect(queue.takeFirst()?.path.remote.port == expected)
            }
            #expect(queue.count == reference.count)
        }
    }

    @Test("Peers with work come out first in, first out, however many are taken out in between")
    func workQueue() {
        var generator = SeededGenerator(seed: 4)
        var queue = WorkQueue()
        var reference: [UInt32] = []
        for number in 0..<20_000 as Range<UInt32> {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1, 2:
                queue.append(PeerIndex(rawValue: number))
                reference.append(number)
            case 3:
                if !reference.isEmpty {
                    queue.removeFirst()
                    reference.removeFirst()
                }
            default:
                if let victim = reference.randomElement(using: &generator) {
                    queue.remove(PeerIndex(rawValue: victim))
                    reference.removeAll { $0 == victim }
                }
            }
            #expect(queue.first?.rawValue == reference.first)
            #expect(queue.isEmpty == reference.isEmpty)
        }
    }
}
