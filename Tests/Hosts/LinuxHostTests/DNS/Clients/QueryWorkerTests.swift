import DNSProxy
import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct QueryWorkerTests {
    @Test func threadsShareTheQueriesAndAllAreAnswered() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(workers: 3)
            try rig.side.startWorkers()
            // The kernel spreads senders over the threads' sockets: of 64 none is likely to have none.
            var clients = ClientSockets()
            for index in 0..<64 {
                let client = try ClientSocket()
                try client.send(ClientWire.query(id: UInt16(index), "localhost"))
                try client.send(ClientWire.query(id: UInt16(1_000 + index), "n\(index % 8).example"))
                clients.append(client)
            }
            try rig.serve(until: "all questions") { $0.waiting == 64 && $0.asked.count == 8 }
            for _ in 0..<8 { try rig.answerFirst() }
            for index in 0..<64 {
                var ids: [UInt16] = []
                try rig.serve(until: "both answers of \(index)") { _ in
                    while let id = try clients.receive(at: index).map(ClientWire.id) { ids.append(id) }
                    return ids.count == 2
                }
                #expect(ids.sorted() == [UInt16(index), UInt16(1_000 + index)])
            }
            rig.side.stopWorkers()
            let counts = rig.side.workers.map { $0.counts.received }
            #expect(counts.allSatisfy { $0 > 0 })
            #expect(rig.side.counts.datagrams == DatagramCounts(received: 128, sent: 128))
        }
    }

    @Test func whatComesWhileThreadsAreStoppedIsAnsweredAfterwards() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(workers: 2)
            try rig.side.startWorkers()
            rig.side.stopWorkers()
            var clients = ClientSockets()
            for index in 0..<32 {
                let client = try ClientSocket()
                try client.send(ClientWire.query(id: UInt16(index), "localhost"))
                clients.append(client)
            }
            // Nobody else reads the stopped thread's socket.
            try rig.serveAll()
            #expect(rig.side.counts.datagrams.received < 32)
            try rig.side.startWorkers()
            for index in 0..<32 {
                try rig.serve(until: "an answer to \(index)") { _ in try clients.receive(at: index) != nil }
            }
            rig.side.close(rig.loop)
        }
    }

    @Test func otherAddressesAreReadByAllThreads() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(["127.0.0.1:53"], workers: 2)
            try rig.side.startWorkers()
            let addresses = try ["127.0.0.1:53", "127.0.0.2:53"].map { try #require(AddressAndPort(parsing: $0)) }
            try rig.side.changeListeners(to: addresses, rig.loop)
            for target in ["127.0.0.1:53", "127.0.0.2:53"] {
                var clients = ClientSockets()
                let before = rig.side.workers[0].counts.received
                for index in 0..<32 {
                    let client = try ClientSocket()
                    try client.send(ClientWire.query(id: UInt16(index), "localhost"), to: target)
                    clients.append(client)
                }
                for index in 0..<32 {
                    try rig.serve(until: "an answer to \(index)") { _ in try clients.receive(at: index) != nil }
                }
                try rig.serve(until: "the thread's count") { $0.side.workers[0].counts.received > before }
            }
            rig.side.close(rig.loop)
        }
    }

    @Test func theProxysThreadIsWokenForWhatWaitsAndForNothingElse() throws {
        try aloneInNewNetworkNamespace {
            let rig = try ClientRig(workers: 2)
            for worker in rig.side.workers { try worker.start() }
            // What the proxy wanted done when it started is not what this is about.
            _ = rig.shared.withProxy { $0.takeActions() }
            var clients = ClientSockets()
            for index in 0..<32 {
                let client = try ClientSocket()
                try client.send(ClientWire.query(id: UInt16(index), "localhost"))
                clients.append(client)
            }
            // The test's thread reads nothing: what is answered is the other thread's.
            try eventually("answers of the other thread") {
                try (0..<32).contains { try clients.receive(at: $0) != nil } ? () : nil
            }
            #expect(staysQuiet(rig.shared.wakeUp.descriptor.rawValue))
            for index in 0..<32 { try clients.send(ClientWire.query(id: UInt16(index), "example.com"), from: index) }
            try awaitReady(rig.shared.wakeUp.descriptor.rawValue, "a wake-up")
            let hasActions = rig.shared.withProxy { $0.hasActions }
            #expect(hasActions)
            for worker in rig.side.workers { worker.stop() }
        }
    }
}
