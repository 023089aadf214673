import Glibc
import Provider
import Testing

@testable import LinuxHost

@Suite struct StreamEndTests {
    @Test func c7AHalfClosedClientGetsItsAnswersAndIsClosedThen() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            try client.write(
                ["a.example", "b.example", "localhost"].enumerated()
                    .flatMap { ClientWire.framed(ClientWire.query(id: UInt16($0.offset), $0.element)) } + [0, 40, 1])
            client.finish()
            try rig.serve(until: "two questions") { $0.asked.count == 2 }
            // The end is level-triggered: it must not have the loop spin.
            try rig.serveAll()
            #expect(rig.side.counts.streams.connected == 1)
            try rig.answer(1)
            try rig.answer(0)
            for id in [2, 1, 0] as [UInt16] { try rig.expectMessage(id, of: &client) }
            try rig.expectEnd(of: &client)
            #expect(rig.side.counts.streams == StreamCounts(accepted: 1))
            #expect(rig.nextDeadline == nil)
        }
    }

    @Test func aClientThatOnlyConnectsIsClosedWhenItLeaves() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            do { _ = try ClientSocket(connectedTo: ClientRig.address).descriptor.rawValue }
            try rig.serve(until: "the client to come and go") {
                $0.side.counts.streams == StreamCounts(accepted: 1)
            }
        }
    }

    @Test func c9WhoBreaksOffIsForgottenAndTheAnswerIsKept() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let breaking = try ClientSocket(connectedTo: ClientRig.address)
            try breaking.write(
                (0..<50).flatMap { ClientWire.framed(ClientWire.query(id: $0, "n\($0).example")) })
            try rig.serve(until: "all questions") { $0.asked.count == 50 }
            breaking.abort()
            try rig.serve(until: "the client to be forgotten") { $0.side.counts.streams.left == 1 }
            #expect(rig.waiting == 0)
            #expect(rig.side.counts.streams == StreamCounts(accepted: 1, left: 1))
            try rig.answerFirst([[192, 0, 2, 77]])
            var next = try ClientSocket(connectedTo: ClientRig.address)
            try next.write(ClientWire.framed(ClientWire.query(id: 7, "n0.example")))
            let answer = try rig.nextMessage(of: &next)
            #expect(answer.suffix(4) == [192, 0, 2, 77])
        }
    }

    @Test func c9WhoBreaksOffWhileNotBeingReadIsNoticed() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let breaking = try ClientSocket(connectedTo: ClientRig.address)
            try breaking.write(
                (0..<300).flatMap { ClientWire.framed(ClientWire.query(id: UInt16($0), "n\($0).example")) })
            try rig.serve(until: "all questions that may wait") { $0.asked.count == StreamClient.maximumPending }
            try rig.serveAll()
            breaking.abort()
            try rig.serve(until: "the client to be forgotten") { $0.side.counts.streams.left == 1 }
            #expect(rig.waiting == 0)
        }
    }

    @Test func anAnswerForOneWhoLeftIsNotGivenToWhoHasItsPlace() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let leaving = try ClientSocket(connectedTo: ClientRig.address)
            try leaving.write(ClientWire.framed(ClientWire.query(id: 1, "a.example")))
            try rig.serve(until: "a question") { $0.asked.count == 1 }
            // What the proxy was told about this query, as if its answer had been on the way.
            let token = StreamQuery(slot: 0, generation: 0, number: 1).token
            leaving.abort()
            try rig.serve(until: "the client to be forgotten") { $0.side.counts.streams.left == 1 }
            var coming = try ClientSocket(connectedTo: ClientRig.address)
            try coming.write(ClientWire.framed(ClientWire.query(id: 2, "b.example")))
            try rig.serve(until: "its question") { $0.asked.count == 2 }
            let nobody = rig.deliver([1, 2, 3], to: token)
            #expect(nobody == nil)
            #expect(coming.next() == .nothing)
            try rig.answer(1)
            try rig.expectMessage(2, of: &coming)
        }
    }

    @Test func closingLetsEveryoneGo() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(workers: 2)
            try rig.side.startWorkers()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            try client.write(ClientWire.framed(ClientWire.query(id: 1, "a.example")))
            try rig.serve(until: "a question") { $0.asked.count == 1 }
            rig.side.close(rig.loop)
            try rig.expectEnd(of: &client)
            #expect(rig.waiting == 0)
            #expect(rig.nextDeadline == nil)
            // The ports are free.
            let another = try ClientRig()
            #expect(another.side.addresses.count == 1)
        }
    }
}
