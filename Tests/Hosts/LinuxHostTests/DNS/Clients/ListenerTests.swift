import DNSProxy
import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct ListenerTests {
    @Test(arguments: [1, 3])
    func aPortThatIsTakenIsToldByAddressAndTransport(workers: Int) throws {
        try aloneInNewNetworkNamespace {
            let owner = try ClientRig(["127.0.0.1:53"], workers: workers)
            let error = #expect(throws: ClientSideError.self) { _ = try ClientRig(["127.0.0.1:53"], workers: workers) }
            #expect(error.map { "\($0)" } == "cannot listen on 127.0.0.1:53 by UDP: Address already in use")
            let wildcard = #expect(throws: ClientSideError.self) { _ = try ClientRig(["0.0.0.0:53"]) }
            #expect(wildcard.map { "\($0)" } == "cannot listen on 0.0.0.0:53 by UDP: Address already in use")
            let absent = #expect(throws: ClientSideError.self) { _ = try ClientRig(["[2001:db8::1]:53"]) }
            #expect(
                absent.map { "\($0)" }
                    == "cannot listen on [2001:db8::1]:53 by UDP: Cannot assign requested address")
            #expect(owner.side.addresses.count == 1)
        }
    }

    @Test func aPortThatIsTakenByTCPAloneIsTakenToo() throws {
        try aloneInNewNetworkNamespace {
            let rig = try ClientRig(["127.0.0.1:5301"])
            _ = rig.side.listeners[0].datagrams[0].descriptor.rawValue
            let listening = try listen(at: "127.0.0.1:5302")
            let error = #expect(throws: ClientSideError.self) { _ = try ClientRig(["127.0.0.1:5302"]) }
            #expect(error.map { "\($0)" } == "cannot listen on 127.0.0.1:5302 by TCP: Address already in use")
            _ = listening.rawValue
        }
    }

    @Test func otherAddressesAreListenedAtAndWhoIsConnectedStays() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(["127.0.0.1:53", "127.0.0.2:53"])
            var staying = try ClientSocket(connectedTo: "127.0.0.1:53")
            var moved = try ClientSocket(connectedTo: "127.0.0.2:53")
            let client = try ClientSocket()
            try client.send(ClientWire.query(id: 1, "a.example"), to: "127.0.0.2:53")
            try client.send(ClientWire.query(id: 2, "a.example"), to: "127.0.0.1:53")
            try rig.serve(until: "two queries") { $0.waiting == 2 && $0.side.counts.streams.connected == 2 }
            let before = rig.side.listeners[0]
            let addresses = try ["127.0.0.3:53", "127.0.0.1:53"].map { try #require(AddressAndPort(parsing: $0)) }
            try rig.side.changeListeners(to: addresses, rig.loop)
            #expect(rig.side.addresses == addresses)
            #expect(rig.side.listeners[1] === before)
            // The socket that the first query came to is gone, and its answer with it.
            try rig.answerFirst()
            try rig.expectDatagram(2, at: client)
            #expect(try client.receive() == nil)
            #expect(rig.side.counts.datagrams.failed == 1)
            for target in ["127.0.0.1:53", "127.0.0.3:53"] {
                try client.send(ClientWire.query(id: 3, "localhost"), to: target)
                try rig.expectDatagram(3, at: client)
                var connected = try ClientSocket(connectedTo: target)
                try connected.write(ClientWire.framed(ClientWire.query(id: 4, "localhost")))
                try rig.expectMessage(4, of: &connected)
            }
            #expect(throws: SystemCallError("connect", errno: ECONNREFUSED)) {
                _ = try ClientSocket(connectedTo: "127.0.0.2:53")
            }
            try staying.write(ClientWire.framed(ClientWire.query(id: 5, "localhost")))
            try rig.expectMessage(5, of: &staying)
            try moved.write(ClientWire.framed(ClientWire.query(id: 6, "localhost")))
            try rig.expectMessage(6, of: &moved)
        }
    }

    @Test func anAddressThatIsNamedTwiceIsListenedAtOnce() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(["127.0.0.1:53", "127.0.0.1:53"], workers: 2)
            let before = rig.side.addresses
            let twice = try ["127.0.0.1:53", "127.0.0.2:53", "127.0.0.2:53", "127.0.0.1:53"].map {
                try #require(AddressAndPort(parsing: $0))
            }
            try rig.side.changeListeners(to: twice, rig.loop)
            #expect(before.map { "\($0)" } == ["127.0.0.1:53"])
            #expect(rig.side.addresses == Array(twice[..<2]))
        }
    }

    @Test(arguments: [1, 2])
    func whatCannotBeListenedAtChangesNothing(workers: Int) throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(["127.0.0.1:53"], workers: workers)
            let blocker = try listen(at: "127.0.0.9:53")
            let addresses = try ["127.0.0.8:53", "127.0.0.9:53"].map { try #require(AddressAndPort(parsing: $0)) }
            #expect(throws: ClientSideError.listening(addresses[1], .tcp, SystemCallError("bind", errno: EADDRINUSE))) {
                try rig.side.changeListeners(to: addresses, rig.loop)
            }
            #expect(rig.side.addresses.map { "\($0)" } == ["127.0.0.1:53"])
            // Nothing of it is left open.
            let probe = try ClientRig(["127.0.0.8:53"])
            _ = (blocker.rawValue, probe.side.addresses)
            var client = try ClientSocket(connectedTo: "127.0.0.1:53")
            try client.write(ClientWire.framed(ClientWire.query(id: 4, "localhost")))
            try rig.expectMessage(4, of: &client)
        }
    }

    @Test(arguments: [1, 2], [["0.0.0.0:53", "127.0.0.1:53"], ["127.0.0.1:53", "0.0.0.0:53"]])
    func aWildcardAndAnAddressReplaceEachOther(workers: Int, order: [String]) throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig([order[0]], workers: workers)
            try rig.side.startWorkers()
            try rig.side.changeListeners(to: [#require(AddressAndPort(parsing: order[1]))], rig.loop)
            #expect(rig.side.addresses.map { "\($0)" } == [order[1]])
            let client = try ClientSocket()
            try client.send(ClientWire.query(id: 1, "localhost"), to: "127.0.0.1:53")
            try rig.expectDatagram(1, at: client)
            var connected = try ClientSocket(connectedTo: "127.0.0.1:53")
            try connected.write(ClientWire.framed(ClientWire.query(id: 4, "localhost")))
            try rig.expectMessage(4, of: &connected)
            // Nobody else can share the port now.
            #expect(throws: ClientSideError.self) { _ = try ClientRig([order[1]]) }
            rig.side.close(rig.loop)
        }
    }

    @Test(arguments: [EMFILE, ENFILE, ENOMEM])
    func withoutDescriptorsNobodyIsAcceptedForAMoment(error: Int32) throws {
        // A system-call filter stands for a full table, for good: on a thread of its own, which ends with the test.
        let events = try aloneInNewNetworkNamespace {
            try refuseAccepting(with: error)
            var rig = try ClientRig()
            let client = try ClientSocket(connectedTo: ClientRig.address)
            var events: [String] = []
            for _ in 0..<2 {
                try rig.serve(until: "a pause") { $0.nextDeadline != nil }
                // The client that waits must not have the loop spin.
                try rig.serveAll()
                events.append("paused")
                rig.handleDeadlines(at: HostClock.now() + .seconds(1))
                if rig.nextDeadline == nil { events.append("accepts") }
            }
            _ = client.descriptor.rawValue
            return events
        }
        #expect(events == ["paused", "accepts", "paused", "accepts"])
    }

    private func listen(at text: String) throws -> FileDescriptor {
        let address = try #require(AddressAndPort(parsing: text))
        let opening = ListenerOpening(address: address, number: 0, threads: 1, sharesPort: false)
        return try opening.openStreams()
    }
}
