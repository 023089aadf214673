import DNSProxy
import Glibc
import Provider
import Testing

@testable import LinuxHost

@Suite struct StreamLimitTests {
    @Test func c6AClientThatDoesNothingIsClosedAfterTheIdleTime() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(idle: .seconds(20))
            var silent = try ClientSocket(connectedTo: ClientRig.address)
            var halfway = try ClientSocket(connectedTo: ClientRig.address)
            var waiting = try ClientSocket(connectedTo: ClientRig.address)
            let query = ClientWire.framed(ClientWire.query(id: 1, "localhost"))
            try halfway.write(Array(query.dropLast()))
            try waiting.write(ClientWire.framed(ClientWire.query(id: 2, "example.com")))
            try rig.serve(until: "three clients") { $0.side.counts.streams.connected == 3 && $0.asked.count == 1 }
            try rig.serve(until: "half a query") { $0.side.heldByteCount > 0 }
            let next = rig.nextDeadline
            let deadline = try #require(next)
            #expect(deadline > HostClock.now() + .seconds(15))
            // Nothing is due before.
            rig.handleDeadlines(at: Instant(nanoseconds: deadline.nanoseconds - 1))
            #expect(rig.side.counts.streams.timedOut == 0)
            let later = HostClock.now() + .seconds(20)
            rig.handleDeadlines(at: later)
            try rig.expectEnd(of: &silent)
            try rig.expectEnd(of: &halfway)
            #expect(rig.side.counts.streams == StreamCounts(connected: 1, accepted: 3, timedOut: 2))
            // Who waits for an answer gets it, and has the whole idle time from then on.
            #expect(rig.side.nextDeadline == nil)
            try rig.answerFirst()
            try rig.expectMessage(2, of: &waiting)
            let following = rig.nextDeadline
            let last = try #require(following)
            #expect(last > HostClock.now() + .seconds(19))
        }
    }

    @Test func c6SingleBytesDoNotKeepAConnectionAlive() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(idle: .milliseconds(300))
            var slow = try ClientSocket(connectedTo: ClientRig.address)
            let query = ClientWire.framed(ClientWire.query(id: 1, "example.com") + [UInt8](repeating: 0, count: 4_000))
            var offset = 0
            // It sends all the time, by the millisecond, and is closed all the same.
            try rig.serve(until: "the end of a slow client") { rig in
                if offset < query.count - 1 {
                    // Refused once it is closed.
                    _ = try? slow.write([query[offset]])
                    offset += 1
                }
                rig.handleDeadlines(at: HostClock.now())
                return rig.side.counts.streams.timedOut == 1
            }
            #expect(offset > 10)
            try rig.expectEnd(of: &slow)
        }
    }

    @Test func c6WholeQueriesKeepAConnectionAlive() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(idle: .milliseconds(200))
            var client = try ClientSocket(connectedTo: ClientRig.address)
            let start = HostClock.now()
            while HostClock.now() < start + .milliseconds(600) {
                try client.write(ClientWire.framed(ClientWire.query(id: 1, "localhost")))
                _ = try rig.nextMessage(of: &client)
                rig.handleDeadlines(at: HostClock.now())
            }
            #expect(rig.side.counts.streams == StreamCounts(connected: 1, accepted: 1))
        }
    }

    @Test func theIdlestMakesRoomWhenThereAreTooMany() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var clients = ClientSockets()
            for _ in 0..<StreamClients.maximumCount { clients.append(try ClientSocket(connectedTo: ClientRig.address)) }
            try rig.serve(until: "all clients") { $0.side.counts.streams.connected == StreamClients.maximumCount }
            var isAnswered = false
            // The first does something, and the second waits for something: the third is the idlest.
            try clients.write(ClientWire.framed(ClientWire.query(id: 1, "localhost")), to: 0)
            try clients.write(ClientWire.framed(ClientWire.query(id: 2, "example.com")), to: 1)
            try rig.serve(until: "an answer and a question") {
                if case .message = clients.next(of: 0) { isAnswered = true }
                return isAnswered && $0.asked.count == 1
            }
            var another = try ClientSocket(connectedTo: ClientRig.address)
            try another.write(ClientWire.framed(ClientWire.query(id: 3, "localhost")))
            try rig.expectMessage(3, of: &another)
            try rig.serve(until: "the end of the idlest") { _ in clients.next(of: 2) == .end }
            #expect(clients.next(of: 0) == .nothing)
            #expect(clients.next(of: 1) == .nothing)
            let counts = rig.side.counts.streams
            #expect(counts == StreamCounts(connected: 256, accepted: 257, displaced: 1))
        }
    }

    @Test func oneAddressHasAShareOnly() throws {
        try aloneInNewNetworkNamespace {
            try run("ip", "addr", "add", "10.9.0.1/32", "dev", "lo")
            var rig = try ClientRig(["0.0.0.0:53"])
            var greedy = ClientSockets()
            for _ in 0..<StreamClients.maximumPerAddress + 6 {
                greedy.append(try ClientSocket(connectedTo: "10.9.0.1:53", from: "10.9.0.1"))
            }
            var other = try ClientSocket(connectedTo: "127.0.0.1:53")
            try rig.serve(until: "the last client") { $0.side.counts.streams.accepted == 71 }
            #expect(
                rig.side.counts.streams == StreamCounts(connected: 65, accepted: 71, displaced: 6))
            #expect(other.next() == .nothing)
            for index in 0..<6 { try rig.serve(until: "the end of \(index)") { _ in greedy.next(of: index) == .end } }
            #expect(greedy.next(of: 6) == .nothing)
        }
    }

    @Test func aProxyThatTakesNoFlowsTurnsClientsAway() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            rig.shared.withProxy { $0.shed(.newFlows) }
            var client = try ClientSocket(connectedTo: ClientRig.address)
            try rig.serve(until: "a refusal") { $0.side.counts.streams.refused == 1 }
            try rig.expectEnd(of: &client)
        }
    }

    @Test func aClientWithManyQueriesWaitsForAnswers() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            let count = 300
            try client.write(
                (0..<count).flatMap { ClientWire.framed(ClientWire.query(id: UInt16($0), "n\($0).example")) })
            try rig.serve(until: "all questions that may wait") { $0.asked.count == StreamClient.maximumPending }
            try rig.serveAll()
            #expect(rig.asked.count == StreamClient.maximumPending)
            #expect(rig.waiting == StreamClient.maximumPending)
            try rig.answerFirst()
            try rig.serveAll()
            #expect(rig.asked.count == StreamClient.maximumPending)
            var answered: Set<UInt16> = []
            while answered.count < count {
                if !rig.asked.isEmpty { try rig.answerFirst() }
                try rig.serve(until: "an answer") { _ in
                    guard case .message(let answer) = client.next() else { return false }
                    answered.insert(ClientWire.id(answer))
                    return true
                }
            }
            #expect(answered == Set(0..<UInt16(count)))
            #expect(rig.waiting == 0)
        }
    }

    @Test func aClientThatDoesNotReadIsNotReadAndInTheEndClosed() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            try keepALargeAnswer(in: &rig)
            let client = try ClientSocket(connectedTo: ClientRig.address, receiveBuffer: 4_096)
            var rest: [UInt8] = []
            let sent = try askUntilStuck(client, &rig, unfinished: &rest)
            #expect(sent < 4_000)
            // What one may leave unread, the answers to one piece more, and what was read of its queries.
            #expect(rig.side.heldByteCount > StreamClient.maximumUnsent)
            #expect(rig.side.heldByteCount < StreamClient.maximumUnsent + 131_074 + 8_192 + StreamClients.pieceCapacity)
            let later = HostClock.now() + .seconds(21)
            rig.handleDeadlines(at: later)
            #expect(rig.side.counts.streams == StreamCounts(accepted: 2, timedOut: 1))
            _ = client.descriptor.rawValue
        }
    }

    @Test func aClientThatReadsAgainGetsAllItsAnswers() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            try keepALargeAnswer(in: &rig)
            var client = try ClientSocket(connectedTo: ClientRig.address, receiveBuffer: 4_096)
            var rest: [UInt8] = []
            let sent = try askUntilStuck(client, &rig, unfinished: &rest)
            var received: [UInt16] = []
            try rig.serve(until: "all answers") { _ in
                rest.removeFirst(try client.write(rest))
                while case .message(let answer) = client.next() {
                    #expect(answer.count == 12 + 19 + 60 * (12 + 256) + 11)
                    received.append(ClientWire.id(answer))
                }
                return received.count == sent
            }
            #expect(received == (0..<sent).map { UInt16($0) })
        }
    }

    /// Has an answer of 16 KB kept.
    private func keepALargeAnswer(in rig: inout ClientRig) throws {
        let data = (0..<60).map { [255] + [UInt8](repeating: UInt8($0), count: 255) }
        let first = try ClientSocket(connectedTo: ClientRig.address)
        try first.write(ClientWire.framed(ClientWire.query(id: 0, "large.example", type: 16)))
        try rig.serve(until: "a question") { $0.asked.count == 1 }
        try rig.answerFirst(type: 16, data)
        first.finish()
        try rig.serve(until: "the first one's end") { $0.side.counts.streams.connected == 0 }
    }

    /// Asks for it, and reads no answer, until the connection takes no more queries; returns how many it took, and what it did not take
    /// of the last one.
    private func askUntilStuck(
        _ client: borrowing ClientSocket, _ rig: inout ClientRig, unfinished: inout [UInt8]
    ) throws -> Int {
        // An option of 8,000 bytes makes the buffers of the kernel full after some hundred queries.
        let option: [UInt8] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0x1F, 0x44, 0xFF, 0xFE, 0x1F, 0x40]
        let additional = option + [UInt8](repeating: 0, count: 8_000)
        let limit = 4_000
        var sent = 0
        var rest: [UInt8] = []
        var stuckSince: Instant?
        try rig.serve(until: "a client that is stuck") { rig in
            while sent < limit {
                if rest.isEmpty {
                    rest = ClientWire.framed(
                        ClientWire.query(id: UInt16(sent), "large.example", type: 16, additional: additional))
                    sent += 1
                }
                let count = try client.write(rest)
                if count == 0 { break }
                rest.removeFirst(count)
                stuckSince = nil
            }
            // Not before the other end has stopped to read does it count that there is no room.
            let now = HostClock.now()
            if stuckSince == nil || rig.side.heldByteCount <= StreamClient.maximumUnsent { stuckSince = now }
            return stuckSince.map { now > $0 + .milliseconds(100) } ?? false
        }
        unfinished = rest
        return sent
    }

    @Test func halfReadQueriesOfAllTogetherAreBounded() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var clients = ClientSockets()
            var modest = try ClientSocket(connectedTo: ClientRig.address)
            let query = ClientWire.framed(ClientWire.query(id: 1, "localhost"))
            try modest.write(Array(query.dropLast()))
            for _ in 0..<100 {
                let client = try ClientSocket(connectedTo: ClientRig.address)
                try client.write([0xFF, 0xFF, 1])
                clients.append(client)
            }
            try rig.serve(until: "all clients") { $0.side.counts.streams.accepted == 101 }
            try rig.serve(until: "the bound") { $0.side.counts.streams.overfull == 100 - 32 }
            try rig.serveAll()
            let counts = rig.side.counts.streams
            #expect(counts.connected == 1 + StreamClients.maximumHeldByteCount / 65_536)
            #expect(counts.overfull == 100 - 32)
            try modest.write([query[query.count - 1]])
            try rig.expectMessage(1, of: &modest)
        }
    }
}
