import Provider
import Testing

@testable import LinuxHost

/// Clients that do anything in any order, by a seed: whatever they do, each query of one that stays is answered exactly once, and
/// nothing is left of those that went.
@Suite struct RandomStreamTests {
    /// A client with what is known of it.
    private final class Client {
        var socket: ClientSocket
        /// Bytes that it has not sent.
        var unsent: [UInt8] = []
        /// Queries without an answer, those that are not sent among them.
        var open: Set<UInt16> = []
        var lastID: UInt16 = 0
        var isFinished = false

        init() throws { socket = try ClientSocket(connectedTo: ClientRig.address) }

        func ask(_ name: String) {
            lastID += 1
            open.insert(lastID)
            unsent += ClientWire.framed(ClientWire.query(id: lastID, name))
        }

        func write(_ count: Int) throws {
            if unsent.isEmpty { return }
            unsent.removeFirst(try socket.write(Array(unsent.prefix(count))))
        }

        /// Reads what came; true at the end of the connection.
        func read() throws -> Bool {
            while true {
                switch socket.next() {
                case .message(let answer):
                    guard open.remove(ClientWire.id(answer)) != nil else {
                        throw Impatience(awaited: "an answer to a query, not a second one")
                    }
                case .nothing: return false
                case .end: return true
                case .reset: throw Impatience(awaited: "a connection that is not broken off")
                }
            }
        }
    }

    /// A multiplicative congruential generator (Lehmer's, with the modulus 2³¹ − 1).
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            var value: UInt64 = 0
            for _ in 0..<3 {
                state = state * 48_271 % 0x7FFF_FFFF
                value = value << 24 ^ state
            }
            return value
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func everyQueryIsAnsweredOnceWhateverClientsDo(seed: UInt64) throws {
        try aloneInNewNetworkNamespace {
            var generator = Generator(state: seed)
            var rig = try ClientRig()
            var clients: [Client] = []
            var aborted: UInt64 = 0
            for _ in 0..<1_500 {
                switch Int.random(in: 0..<20, using: &generator) {
                case 0 where clients.count < 12: clients.append(try Client())
                case 1...6:
                    let name = Int.random(in: -10..<60, using: &generator)
                    clients.randomElement(using: &generator)?.ask(name < 0 ? "localhost" : "n\(name).example")
                case 7...11:
                    guard let client = clients.randomElement(using: &generator), !client.isFinished else { continue }
                    try client.write(Int.random(in: 1...90, using: &generator))
                case 12...15:
                    guard let index = rig.asked.indices.randomElement(using: &generator) else { continue }
                    try rig.answer(index)
                case 16:
                    guard let client = clients.randomElement(using: &generator), client.unsent.isEmpty else { continue }
                    client.socket.finish()
                    client.isFinished = true
                case 17 where Int.random(in: 0..<4, using: &generator) == 0:
                    guard let index = clients.indices.randomElement(using: &generator) else { continue }
                    clients[index].socket.breakWhenClosed()
                    clients.remove(at: index)
                    aborted += 1
                default: try rig.turn(until: HostClock.now())
                }
                // One that is finished sends nothing that was asked later.
                clients.removeAll { $0.isFinished && !$0.unsent.isEmpty }
                for client in clients { _ = try client.read() }
            }
            var over: Set<Int> = []
            for client in clients where !client.isFinished { client.ask("localhost") }
            try rig.serve(until: "all answers, and the end of those that are finished") { rig in
                for (index, client) in clients.enumerated() where !over.contains(index) {
                    if !client.isFinished { try client.write(.max) }
                    if try client.read() { over.insert(index) }
                }
                while !rig.asked.isEmpty { try rig.answerFirst() }
                return clients.enumerated().allSatisfy {
                    $0.element.open.isEmpty && $0.element.isFinished == over.contains($0.offset)
                }
            }
            for client in clients { client.socket.breakWhenClosed() }
            clients = []
            try rig.serve(until: "everyone to be forgotten") { $0.side.counts.streams.connected == 0 }
            #expect(rig.waiting == 0)
            #expect(rig.side.heldByteCount == 0)
            let counts = rig.side.counts.streams
            #expect(aborted > 0 && counts.accepted > 5)
            // One may break off before it is accepted.
            #expect(counts.refused <= aborted)
            #expect(counts.timedOut + counts.malformed + counts.displaced + counts.overfull == 0)
        }
    }
}
