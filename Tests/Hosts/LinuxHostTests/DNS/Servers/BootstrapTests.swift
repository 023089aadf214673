import CLinux
import DNSMessage
import DNSProxy
import Glibc
import IPPacket
import Provider
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct BootstrapTests {
    /// An answer with addresses behind the question, each by a pointer to its name.
    private func answer(_ query: [UInt8], _ addresses: [String], timeToLive: UInt8 = 60) -> [UInt8] {
        var bytes = wireAnswer(to: query)
        bytes[7] = UInt8(addresses.count)
        for text in addresses {
            let isV4: Bool
            var octets: [UInt8] = []
            switch address(text) {
            case .v4(let address):
                isV4 = true
                for shift in stride(from: 24, through: 0, by: -8) {
                    octets.append(UInt8(truncatingIfNeeded: address.bits >> UInt32(shift)))
                }
            case .v6(let address):
                isV4 = false
                for half in [address.high, address.low] {
                    for shift in stride(from: 56, through: 0, by: -8) {
                        octets.append(UInt8(truncatingIfNeeded: half >> UInt64(shift)))
                    }
                }
            }
            bytes += [0xC0, 12, 0, isV4 ? 1 : 28, 0, 1, 0, 0, 0, timeToLive, 0, UInt8(octets.count)] + octets
        }
        return bytes
    }

    private func type(of query: [UInt8]) -> UInt8 { query[query.count - 3] }

    /// Answers one question for IPv4 and one for IPv6.
    private func serve(
        _ resolver: borrowing LoopbackServer, v4: [String], v6: [String], expecting name: String = "dns.example"
    ) throws {
        for _ in 0..<2 {
            let (query, sender) = try resolver.receive()
            #expect(query[12...].starts(with: wireQuery(name, id: 0)[12...].dropLast(4)))
            try resolver.send(answer(query, type(of: query) == 1 ? v4 : v6), to: sender)
        }
    }

    @Test func `a server that is known by name is looked up by plain questions, and connected to`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        let resolver = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver(
            [upstream(.tcp, "dns.example", server.port)],
            bootstrap: [AddressAndPort(address: address("127.0.0.1"), port: resolver.port)])
        driver.ask("a.example", by: .tcp)
        try serve(resolver, v4: ["127.0.0.1"], v6: [])
        try driver.run("a connection") { _ in
            var entry = pollfd(fd: server.descriptor.rawValue, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&entry, 1, 0) == 1
        }
        #expect(driver.client.endedCount == 0)
        let status = driver.servers.status[0]
        #expect(status.addresses == [address("127.0.0.1")] && status.addressSource == .bootstrap)
        #expect(status.failedResolutionCount == 0)
    }

    @Test func `datagrams wait for the address too`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        let resolver = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver(
            [upstream(.udp, "dns.example", server.port)],
            bootstrap: [AddressAndPort(address: address("127.0.0.1"), port: resolver.port)])
        driver.ask("a.example", by: .udp)
        driver.ask("b.example", by: .udp)
        try serve(resolver, v4: ["127.0.0.1"], v6: [])
        let descriptor = server.descriptor.rawValue
        for number in 1...2 {
            try driver.run("a query") { _ in
                var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                return unsafe poll(&entry, 1, 0) == 1
            }
            let (query, sender) = try server.receive()
            try server.send(wireAnswer(to: query), to: sender)
            try driver.run("an answer") { $0.answers.count == number }
        }
    }

    @Test func `a resolver that refuses is followed by the next at once, and forged answers do not count`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        let refusing = try LoopbackServer(SOCK_DGRAM)
        let answering = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver(
            [upstream(.udp, "dns.example", server.port)],
            bootstrap: [refusing.port, answering.port].map { AddressAndPort(address: address("127.0.0.1"), port: $0) })
        driver.ask("a.example", by: .udp)
        for _ in 0..<2 {
            let (query, sender) = try refusing.receive()
            var forged = answer(query, ["192.0.2.66"])
            forged[1] ^= 0xFF
            try refusing.send(forged, to: sender)
            var refusal = wireAnswer(to: query)
            refusal[3] |= 5
            try refusing.send(refusal, to: sender)
        }
        let descriptor = answering.descriptor.rawValue
        try driver.run("a question to the second resolver") { _ in
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&entry, 1, 0) == 1
        }
        try serve(answering, v4: ["127.0.0.1"], v6: [])
        try driver.run("the address") { _ in true }
        let server4 = server.descriptor.rawValue
        try driver.run("a query at the right address") { _ in
            var entry = pollfd(fd: server4, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&entry, 1, 0) == 1
        }
        #expect(driver.servers.status[0].addresses == [address("127.0.0.1")])
    }

    @Test func `no resolver answers: those that wait are told that nobody knows an address`() throws {
        // Nobody listens there any more.
        let port = try LoopbackServer(SOCK_DGRAM).port
        var driver = try ServerDriver(
            [upstream(.tcp, "dns.example", 853), upstream(.udp, "dns.example", 53)],
            bootstrap: [AddressAndPort(address: address("127.0.0.1"), port: port)])
        let stream = driver.ask("a.example", by: .tcp)
        let datagram = driver.ask("a.example", by: .udp, upstream: 1)
        try driver.run("the failures") { $0.endedCount == 2 }
        #expect(driver.client.failures == [stream: [.noAddress], datagram: [.noAddress]])
        #expect(driver.servers.status.map(\.failedResolutionCount) == [1, 1])
    }

    @Test func `a family that is late is not waited for long`() throws {
        let server = try LoopbackServer(SOCK_DGRAM)
        let resolver = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver(
            [upstream(.udp, "dns.example", server.port)],
            bootstrap: [AddressAndPort(address: address("127.0.0.1"), port: resolver.port)])
        driver.ask("a.example", by: .udp)
        for _ in 0..<2 {
            let (query, sender) = try resolver.receive()
            if type(of: query) == 1 { try resolver.send(answer(query, ["127.0.0.1"]), to: sender) }
        }
        let start = HostClock.now()
        let descriptor = server.descriptor.rawValue
        try driver.run("a query") { _ in
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&entry, 1, 0) == 1
        }
        #expect(HostClock.now().since(start) < .milliseconds(900))
    }

    @Test func `families take turns, IPv6 first`() throws {
        let resolver = try LoopbackServer(SOCK_DGRAM)
        var driver = try ServerDriver(
            [upstream(.udp, "dns.example", 9)],
            bootstrap: [AddressAndPort(address: address("127.0.0.1"), port: resolver.port)])
        driver.ask("a.example", by: .udp, for: .milliseconds(500))
        try serve(resolver, v4: ["127.0.0.1", "127.0.0.2", "127.0.0.3"], v6: ["::1", "fd00::1"])
        try driver.run("the end") { $0.endedCount == 1 }
        #expect(
            driver.servers.status[0].addresses
                == ["::1", "127.0.0.1", "fd00::1", "127.0.0.2", "127.0.0.3"].map(address))
    }
}
