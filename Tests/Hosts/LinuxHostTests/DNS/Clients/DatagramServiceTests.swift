import Glibc
import IPPacket
import Provider
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct DatagramServiceTests {
    @Test func aBurstIsAnsweredWholeAndEachByItsOwnID() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let client = try ClientSocket()
            // Many batches, and one that is not full; more than sockets have room for that ask for none.
            for id in 0..<1_000 { try client.send(ClientWire.query(id: UInt16(id), "localhost")) }
            var answers: [[UInt8]] = []
            try rig.serve(until: "all answers") { _ in
                while let (answer, from) = try client.receive() {
                    #expect(from == Endpoint(address: address("127.0.0.1"), port: 53))
                    answers.append(answer)
                }
                return answers.count >= 1_000
            }
            #expect(answers.map(ClientWire.id) == Array(0..<1_000))
            #expect(answers.allSatisfy { ClientWire.code($0) == 0 && $0[7] == 1 && $0.suffix(4) == [127, 0, 0, 1] })
            #expect(rig.side.counts.datagrams == DatagramCounts(received: 1_000, sent: 1_000))
        }
    }

    @Test func whatComesFasterThanItIsReadIsCounted() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let client = try ClientSocket()
            let count: UInt64 = 8_000
            for id in 0..<UInt16(count) { try client.send(ClientWire.query(id: id, "localhost")) }
            try rig.serve(until: "all that was not dropped") {
                let counts = $0.side.counts.datagrams
                return counts.received + counts.overrun == count
            }
            #expect(rig.side.counts.datagrams.overrun > 0)
            #expect(rig.side.counts.datagrams.received > 1_000)
        }
    }

    @Test func whatAServerAnswersGoesToEveryoneWhoAskedAndTheNextIsAnsweredAtOnce() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let first = try ClientSocket()
            let second = try ClientSocket()
            try first.send(ClientWire.query(id: 0x1111, "www.example.com"))
            try second.send(ClientWire.query(id: 0x2222, "WWW.example.com"))
            try rig.serve(until: "both queries") { $0.waiting == 2 }
            #expect(rig.asked.count == 1)
            try rig.answerFirst()
            let one = try rig.expectDatagram(0x1111, at: first).message
            let two = try rig.expectDatagram(0x2222, at: second).message
            #expect(Array(two[12..<16]) == [3] + Array("WWW".utf8))
            #expect(one.suffix(4) == [192, 0, 2, 1])
            try first.send(ClientWire.query(id: 0x3333, "www.example.com"))
            try rig.expectDatagram(0x3333, at: first)
            #expect(rig.asked.isEmpty)
            #expect(rig.shared.datagramClients.count == 0)
        }
    }

    @Test(arguments: [("0.0.0.0:53", "127.0.0.77", "127.0.0.1"), ("[::]:53", "fd00:5::77", "fd00:5::1")])
    func aWildcardAnswersFromTheAddressThatWasAsked(listen: String, asked: String, from: String) throws {
        try aloneInNewNetworkNamespace {
            try run("ip", "addr", "add", "fd00:5::1/64", "dev", "lo", "nodad")
            try run("ip", "addr", "add", "fd00:5::77/64", "dev", "lo", "nodad")
            try awaitLocalRoutes("fd00:5::1", "fd00:5::77")
            var rig = try ClientRig([listen])
            let client = try ClientSocket(datagramsFrom: from)
            let target = "\(AddressAndPort(address: address(asked), port: 53))"
            // Answered at once, and later.
            try client.send(ClientWire.query(id: 1, "localhost"), to: target)
            try client.send(ClientWire.query(id: 2, "example.com"), to: target)
            try rig.serve(until: "a question to a server") { $0.asked.count == 1 }
            try rig.answerFirst()
            for id in [1, 2] as [UInt16] {
                let sender = try rig.expectDatagram(id, at: client).from
                #expect(sender == Endpoint(address: address(asked), port: 53))
            }
        }
    }

    @Test func wildcardsOfBothFamiliesHaveOnePortEach() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(["0.0.0.0:53", "[::]:53"])
            let v4 = try ClientSocket()
            let v6 = try ClientSocket(datagramsFrom: "::1")
            try v4.send(ClientWire.query(id: 4, "localhost"))
            try v6.send(ClientWire.query(id: 6, "localhost"), to: "[::1]:53")
            try rig.expectDatagram(4, at: v4)
            try rig.expectDatagram(6, at: v6)
            for target in ["127.0.0.1:53", "[::1]:53"] {
                var connected = try ClientSocket(connectedTo: target)
                try connected.write(ClientWire.framed(ClientWire.query(id: 7, "localhost")))
                try rig.expectMessage(7, of: &connected)
            }
        }
    }

    @Test func aClientThatIsGoneDoesNotStopTheReading() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let staying = try ClientSocket()
            for id in 0..<40 as Range<UInt16> {
                do {
                    // Its port is closed when the answer comes: the kernel sends an ICMP error for each.
                    let leaving = try ClientSocket()
                    try leaving.send(ClientWire.query(id: id, "localhost"))
                }
                try rig.serve(until: "the query") { $0.side.counts.datagrams.received == UInt64(id) + 1 }
            }
            try staying.send(ClientWire.query(id: 99, "localhost"))
            try rig.expectDatagram(99, at: staying)
        }
    }

    @Test func answersThatDoNotFitIntoTheBufferAreDroppedAndCounted() throws {
        // A system-call filter stands for a full buffer, for good: on a thread of its own, which ends with the test.
        let counts = try aloneInNewNetworkNamespace {
            try refuseSending(messages: 3, with: ENOBUFS)
            var rig = try ClientRig()
            let client = try ClientSocket()
            for id in 0..<3 { try client.send(ClientWire.query(id: UInt16(id), "localhost")) }
            // All three are there before one is read: they are one batch.
            try rig.serve(until: "three queries") { $0.side.counts.datagrams.received == 3 }
            try client.send(ClientWire.query(id: 7, "localhost"))
            try rig.expectDatagram(7, at: client)
            return rig.side.counts.datagrams
        }
        #expect(counts == DatagramCounts(received: 4, sent: 1, bufferFull: 3))
    }

    @Test func aQueryMayBeAsLongAsADatagram() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let client = try ClientSocket()
            // An option of 60,000 bytes.
            let option: [UInt8] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0xEA, 0x64, 0xFF, 0xFE, 0xEA, 0x60]
            let padding = [UInt8](repeating: 0, count: 60_000)
            try client.send(ClientWire.query(id: 5, "localhost", additional: option + padding))
            // Nothing but an answer, too short and empty: no answers to those.
            try client.send([0, 6, 0x81, 0x80] + ClientWire.query(id: 6, "localhost").dropFirst(4))
            try client.send([0, 7, 1])
            try client.send([])
            let message = try rig.expectDatagram(5, at: client).message
            #expect(ClientWire.code(message) == 0)
            try rig.serve(until: "all four") { $0.side.counts.datagrams.received == 4 }
            #expect(try client.receive() == nil)
            #expect(rig.side.counts.datagrams == DatagramCounts(received: 4, sent: 1))
        }
    }

    @Test func anAnswerToTheTunnelIsHandedToWhoReadsIt() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let client = DatagramClient(
                origin: .tunnel, client: Endpoint(address: address("10.0.0.1"), port: 4_000),
                server: Endpoint(address: address("10.0.0.53"), port: 53))
            let token = rig.shared.datagramClients.add(client)
            let receiver = rig.deliver([1, 2, 3], to: token)
            #expect(receiver?.client == client.client)
            // It is gone now.
            let nobody = rig.deliver([1, 2, 3], to: token)
            #expect(nobody == nil)
        }
    }
}
