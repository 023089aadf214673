import ByteAccess
import SecureStream
import Testing

@testable import LinuxHost

/// Clients by TLS that have not shaken hands.
@Suite struct HandshakeLimitTests {
    @Test func anAddressHasAShareAndItsSlowestMakesRoom() throws {
        try aloneInNewNetworkNamespace {
            try run("ip", "addr", "add", "10.9.0.1/32", "dev", "lo")
            var rig = try ClientRig()
            try rig.listenForTLS(at: ["0.0.0.0:853"], handshakes: 64, perClient: 3)
            var other = try ClientSocket(connectedTo: "127.0.0.1:853")
            try rig.serve(until: "a client") { $0.side.counts.streams.accepted == 1 }
            var greedy = ClientSockets()
            for count in 1...5 {
                greedy.append(try ClientSocket(connectedTo: "10.9.0.1:853", from: "10.9.0.1"))
                try rig.serve(until: "a client") { $0.side.counts.streams.accepted == 1 + UInt64(count) }
            }
            for index in 0..<2 { try rig.serve(until: "the end of \(index)") { _ in greedy.next(of: index) == .end } }
            for index in 2..<5 { #expect(greedy.next(of: index) == .nothing) }
            #expect(other.next() == .nothing)
            #expect(rig.side.counts.streams == StreamCounts(connected: 4, accepted: 6, displaced: 2))
            #expect(rig.side.counts.secure == SecureCounts(handshaking: 4, displacedHandshakes: 2))
        }
    }

    @Test func halfOfAnAddressCountsWithIPv6() throws {
        try aloneInNewNetworkNamespace {
            let addresses = ["fd00:1::1", "fd00:1::2:0:0:9", "fd00:1:0:1::1"]
            for one in addresses { try run("ip", "addr", "add", "\(one)/128", "dev", "lo", "nodad") }
            try awaitLocalRoutes(addresses)
            var rig = try ClientRig()
            try rig.listenForTLS(at: ["[fd00:1::1]:853"], perClient: 1)
            var clients = ClientSockets()
            for (index, one) in addresses.enumerated() {
                clients.append(try ClientSocket(connectedTo: "[fd00:1::1]:853", from: one))
                try rig.serve(until: "a client") { $0.side.counts.streams.accepted == UInt64(index) + 1 }
            }
            try rig.serve(until: "the end of the first") { _ in clients.next(of: 0) == .end }
            #expect(clients.next(of: 1) == .nothing && clients.next(of: 2) == .nothing)
            #expect(rig.side.counts.secure == SecureCounts(handshaking: 2, displacedHandshakes: 1))
        }
    }

    @Test func ofAllTheNetworkWithMostMakesRoom() throws {
        try aloneInNewNetworkNamespace {
            for number in 1...3 { try run("ip", "addr", "add", "10.9.0.\(number)/32", "dev", "lo") }
            var rig = try ClientRig()
            try rig.listenForTLS(at: ["0.0.0.0:853"], handshakes: 4, perClient: 3)
            var clients = ClientSockets()
            for (index, number) in [1, 2, 2, 2, 3, 3].enumerated() {
                clients.append(try ClientSocket(connectedTo: "10.9.0.1:853", from: "10.9.0.\(number)"))
                try rig.serve(until: "a client") { $0.side.counts.streams.accepted == UInt64(index) + 1 }
            }
            // Of the second's three the first, then the first of its two, as the third has one only at that time.
            for index in [1, 2] { try rig.serve(until: "the end of \(index)") { _ in clients.next(of: index) == .end } }
            for index in [0, 3, 4, 5] { #expect(clients.next(of: index) == .nothing) }
            // A reload that allows fewer takes effect with the next one.
            try rig.listenForTLS(at: ["0.0.0.0:853"], handshakes: 2, perClient: 3)
            clients.append(try ClientSocket(connectedTo: "10.9.0.1:853", from: "10.9.0.3"))
            try rig.serve(until: "another") { $0.side.counts.streams.accepted == 7 }
            #expect(rig.side.counts.secure == SecureCounts(handshaking: 2, displacedHandshakes: 5))
        }
    }

    @Test func handshakesLetOthersHaveTheirTurn() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            try rig.listenForTLS(at: ["127.0.0.1:853"], handshakes: 256)
            let context = try TLSClientContext(.authorities())
            var clients = ClientSockets()
            for _ in 0..<8 { clients.append(try ClientSocket(connectedTo: "127.0.0.1:853")) }
            try rig.serve(until: "all clients") { $0.side.counts.streams.accepted == 8 }
            for index in 0..<8 {
                var client = try TLSClient(context, identity: .name("own"))
                try clients.write(client.nextBytes(), to: index)
            }
            let plain = try ClientSocket(datagramsFrom: "127.0.0.1")
            try plain.send(ClientWire.query(id: 7, "localhost"))
            // Whatever of it is there at one time: of those who wait, one a turn is answered.
            var (answered, turns) = (0, 0)
            try rig.serve(until: "all answers") { _ in
                let now = clients.readableCount
                #expect(now - answered <= StreamClients.handshakeStepsPerTurn)
                (answered, turns) = (now, turns + 1)
                return answered == 8
            }
            #expect(turns >= 8)
            try rig.expectDatagram(7, at: plain)
            #expect(rig.side.counts.secure == SecureCounts(handshaking: 8))
        }
    }

    @Test func manyAtOnceWaitUntilTheyAreAccepted() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            try rig.listenForTLS(at: ["127.0.0.1:853"], handshakes: 64)
            let context = try TLSClientContext(.authorities())
            var clients = ClientSockets()
            for index in 0..<100 {
                clients.append(try ClientSocket(connectedTo: "127.0.0.1:853"))
                var client = try TLSClient(context, identity: .name("own"))
                try clients.write(client.nextBytes(), to: index)
            }
            // Each is gone as soon as it has an answer, as if it had shaken hands.
            var answered = 0
            try rig.serve(until: "all answers") { _ in
                answered += clients.removeReadable()
                return answered == 100
            }
            try rig.serve(until: "their ends") { $0.side.counts.streams.connected == 0 }
            #expect(rig.side.counts.secure == SecureCounts())
            #expect(rig.side.counts.streams == StreamCounts(accepted: 100))
        }
    }
}

extension TLSClient {
    /// What it has to say now.
    fileprivate mutating func nextBytes() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        var span = bytes.mutableSpan
        var octets = span.mutableOctets
        let count = nextOutgoing(into: &octets)
        return Array(bytes[..<count])
    }
}
