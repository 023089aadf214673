import CLinux
import DNSProxy
import Glibc
import Provider
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct DatagramExchangeTests {
    @Test func `a query leaves from a port of its own, which is known while the answer is waited for`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver([upstream(.udp, server.port)])
        let id = driver.ask("a.example", by: .udp)
        let (query, sender) = try server.receive()
        #expect(query == driver.client.queries[id])
        #expect(sender.port >= 32_768 && driver.ports.contains(sender.port))
        try server.send(wireAnswer(to: query), to: sender)
        try driver.run("the answer") { $0.endedCount == 1 }
        #expect(driver.client.answers[id] == wireAnswer(to: query))
        #expect(!driver.ports.contains(sender.port))
    }

    @Test func `ports and IDs are drawn, not counted`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver([upstream(.udp, server.port)])
        var (ports, ids): ([UInt16], [UInt16]) = ([], [])
        for number in 0..<64 {
            driver.ask("n\(number).example", by: .udp)
            let (query, sender) = try server.receive()
            ports.append(sender.port)
            ids.append(UInt16(query[0]) << 8 | UInt16(query[1]))
        }
        // All are open at once, so that no port comes twice; of 64 IDs two are the same once in 33 times, four never.
        #expect(Set(ports).count == 64 && Set(ids).count >= 61)
        for values in [ports, ids] {
            let steps = zip(values, values.dropFirst()).map { $1 &- $0 }
            #expect(Set(steps).count >= 55)
            #expect((values.max() ?? 0) - (values.min() ?? 0) > 16_384)
        }
    }

    @Test func `what is not from the server or not the answer ends nothing`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        let other = try LoopbackServer(SOCK_DGRAM)
        let elsewhere = try LoopbackServer(SOCK_DGRAM, "127.0.0.2", port: server.port)
        var driver = try ServerDriver([upstream(.udp, server.port)])
        let id = driver.ask("a.example", by: .udp)
        let (query, sender) = try server.receive()
        try other.send(wireAnswer(to: query), to: sender)
        try elsewhere.send(wireAnswer(to: query), to: sender)
        var forged = wireAnswer(to: query)
        forged[0] ^= 1
        try server.send(forged, to: sender)
        try server.send([1, 2, 3], to: sender)
        try driver.run("the forged answers") { $0.strayCount == 2 }
        #expect(driver.client.endedCount == 0)
        try server.send(wireAnswer(to: query), to: sender)
        try driver.run("the answer") { $0.endedCount == 1 }
        #expect(driver.client.answers[id] != nil && driver.client.strayCount == 2)
    }

    @Test func `a port that nobody listens on fails at once`() throws {
        let port = try LoopbackServer(SOCK_DGRAM).port
        var driver = try ServerDriver([upstream(.udp, port)])
        let start = HostClock.now()
        let id = driver.ask("a.example", by: .udp)
        try driver.run("the failure") { $0.endedCount == 1 }
        #expect(driver.client.failures == [id: [.unreachable]])
        #expect(HostClock.now().since(start) < .seconds(2))
    }

    @Test func `a way that is barred fails at once`() throws {
        try onThreadOfItsOwn {
            try inNewNetworkNamespace {
                try run("ip", "route", "add", "unreachable", "192.0.2.0/24")
                var driver = try ServerDriver([upstream(.udp, "192.0.2.1", 53)])
                let id = driver.ask("a.example", by: .udp)
                try driver.run("the failure") { $0.endedCount == 1 }
                #expect(driver.client.failures == [id: [.unreachable]])
            }
        }
    }

    @Test func `the next address is asked when one refuses, and kept to`() throws {
        let server = try LoopbackServer(SOCK_DGRAM, "127.0.0.2")
        var driver = try ServerDriver([
            upstream(.udp, "dns.example", server.port, addresses: ["127.0.0.3", "127.0.0.2"])
        ])
        for number in 0..<2 {
            let id = driver.ask("n\(number).example", by: .udp)
            try driver.run("a datagram at the second address") { _ in
                var entry = pollfd(fd: server.descriptor.rawValue, events: Int16(POLLIN), revents: 0)
                return unsafe poll(&entry, 1, 0) == 1
            }
            let (query, sender) = try server.receive()
            try server.send(wireAnswer(to: query), to: sender)
            try driver.run("the answer") { $0.answers[id] != nil }
        }
        #expect(driver.client.failures.isEmpty)
    }

    @Test func `IPv6 servers are asked too`() throws {
        let server = try LoopbackServer(SOCK_DGRAM, "::1")
        var driver = try ServerDriver([upstream(.udp, "::1", server.port)])
        driver.ask("a.example", by: .udp)
        let (query, sender) = try server.receive()
        try server.send(wireAnswer(to: query), to: sender)
        try driver.run("the answer") { $0.endedCount == 1 }
        #expect(driver.client.failures.isEmpty)
    }

    @Test func `a cancelled exchange ends without a word, and its socket is closed`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver([upstream(.udp, server.port)])
        let id = driver.ask("a.example", by: .udp)
        let (query, sender) = try server.receive()
        driver.servers.cancel(id, at: HostClock.now(), driver.loop)
        #expect(!driver.ports.contains(sender.port))
        // The socket is gone: this comes back to the server as an error.
        _ = try? server.send(wireAnswer(to: query), to: sender)
        driver.ask("b.example", by: .udp)
        let (next, nextSender) = try eventually("the next query") { try? server.receive() }
        try server.send(wireAnswer(to: next), to: nextSender)
        try driver.run("the next answer") { $0.endedCount == 1 }
        #expect(driver.client.answers[id] == nil && driver.client.failures.isEmpty)
    }

    @Test func `silence ends at the deadline`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver([upstream(.udp, server.port)])
        let id = driver.ask("a.example", by: .udp, for: .milliseconds(50))
        try driver.run("the deadline") { $0.endedCount == 1 }
        #expect(driver.client.failures == [id: [.timedOut]])
        #expect(driver.servers.nextDeadline == nil)
    }

    @Test func `there are only so many sockets at one time: what is more waits for room, its time runs on`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver([upstream(.udp, server.port)])
        for number in 0..<512 { driver.ask("n\(number).example", by: .udp) }
        driver.ask("one.more.example", by: .udp)
        let late = driver.ask("late.example", by: .udp, for: .milliseconds(50))
        let given = driver.ask("given.up.example", by: .udp)
        #expect(driver.client.endedCount == 0)
        #expect(driver.servers.datagrams.count == 512)
        #expect(driver.servers.queuedDatagrams.count == 3)
        driver.servers.cancel(given, at: HostClock.now(), driver.loop)
        try driver.run("the deadline of what waits") { $0.endedCount == 1 }
        #expect(driver.client.failures == [late: [.timedOut]])
        #expect(driver.servers.queuedDatagrams.count == 1)
        driver.servers.cancel(ExchangeID(rawValue: 7), at: HostClock.now(), driver.loop)
        driver.servers.flush(driver.loop)
        #expect(driver.servers.queuedDatagrams.isEmpty)
        #expect(driver.servers.datagrams.count == 512)
        #expect(driver.client.endedCount == 1)
    }
}
