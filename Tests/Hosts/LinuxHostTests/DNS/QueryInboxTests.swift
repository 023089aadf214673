import ByteAccess
import IPPacket
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct QueryInboxTests {
    private let query: [UInt8] = [0xAB, 0xCD, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]

    private func datagram(
        _ payload: [UInt8], from source: (String, UInt16) = ("10.0.0.2", 40_000),
        to server: (String, UInt16) = ("10.0.0.53", 53)
    ) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 2_000)
        var span = bytes.mutableSpan
        var output = span.mutableOctets
        let count = UDPPacket.write(
            payload.span.octets, from: (try IPAddress(parsing: source.0), source.1),
            to: (try IPAddress(parsing: server.0), server.1), into: &output)
        return Array(bytes[..<(try #require(count))])
    }

    private func take(
        _ packet: [UInt8], header: VirtioNetworkHeader = VirtioNetworkHeader(), into inbox: QueryInbox
    ) throws -> Bool {
        inbox.take(try SuperPacket(parsing: packet.span.octets, header: header), packet.span.octets)
    }

    @Test func `queries to any server are taken, over IPv4 and IPv6, with who asks whom`() throws {
        let inbox = try QueryInbox()
        inbox.isOpen = true
        let sources = [("10.0.0.2", "192.0.2.53"), ("fd00::2", "2001:db8::53")]
        for (source, server) in sources {
            #expect(try take(datagram(query, from: (source, 40_000), to: (server, 53)), into: inbox))
        }
        let taken = inbox.takeAll()
        #expect(taken.map(\.bytes) == [query, query])
        #expect(
            try taken.map(\.client)
                == sources.map { Endpoint(address: try IPAddress(parsing: $0.0), port: 40_000) })
        #expect(try taken.map(\.server) == sources.map { Endpoint(address: try IPAddress(parsing: $0.1), port: 53) })
        let isSignalled = inbox.wakeUp.clear()
        #expect(isSignalled)
        #expect(inbox.takeAll().isEmpty)
    }

    @Test func `what is no query of DNS by UDP goes its way`() throws {
        let inbox = try QueryInbox()
        inbox.isOpen = true
        #expect(!(try take(datagram(query, to: ("10.0.0.53", 5353)), into: inbox)))
        #expect(!(try take(datagram(query, from: ("10.0.0.2", 53), to: ("10.0.0.53", 4053)), into: inbox)))
        var fragment = try datagram(query)
        fragment[6] = 0x20
        #expect(!(try take(fragment, into: inbox)))
        var other = try datagram(query)
        other[9] = 132
        #expect(!(try take(other, into: inbox)))
        #expect(inbox.takeAll().isEmpty)
    }

    @Test func `what the proxy asks itself is left alone while it asks`() throws {
        let inbox = try QueryInbox()
        inbox.isOpen = true
        let own = try datagram(query, from: ("10.0.0.2", 50_001))
        #expect(inbox.ownPorts.claim(50_001, .udp))
        #expect(!(try take(own, into: inbox)))
        #expect(try take(datagram(query, from: ("10.0.0.2", 50_002)), into: inbox))
        inbox.ownPorts.release(50_001, .udp)
        #expect(try take(own, into: inbox))
    }

    @Test func `nothing is taken while nobody answers`() throws {
        let inbox = try QueryInbox()
        #expect(!(try take(datagram(query), into: inbox)))
    }

    @Test func `each datagram of a super-packet is a query`() throws {
        let inbox = try QueryInbox()
        inbox.isOpen = true
        let packet = try datagram(query + query + query)
        var header = VirtioNetworkHeader()
        header.flags = [.needsChecksum]
        header.segmentation = .udp
        header.headerLength = 28
        header.segmentSize = UInt16(query.count)
        header.checksumStart = 20
        header.checksumOffset = 6
        #expect(try take(packet, header: header, into: inbox))
        #expect(inbox.takeAll().map(\.bytes) == [query, query, query])
    }

    @Test func `too many queries are lost and counted`() throws {
        let inbox = try QueryInbox()
        inbox.isOpen = true
        let packet = try datagram(query)
        for _ in 0..<5_000 { #expect(try take(packet, into: inbox)) }
        #expect(inbox.takeAll().count + Int(inbox.droppedCount) == 5_000)
        #expect(inbox.droppedCount > 0)
    }
}
