import DNSProxy
import EncryptedDNS
import Glibc
import IPPacket
import Provider
import SecureStream
import TestSupport
import Testing

/// unbound and dnsdist as servers for DNS over TLS and over HTTPS.
@Suite(.serialized) struct RealServerTests {
    private let certificates = Certificates.shared

    private func dot(_ port: UInt16, limits: ConnectionLimits = ConnectionLimits()) throws -> LoopbackClient<
        DoTConnection
    > {
        try LoopbackClient(
            DoTConnection(
                certificates.client(certificates.authority(), protocols: ["dot"]), limits: limits, at: Loopback.now),
            port: port)
    }

    private func doh(_ port: UInt16, _ method: DoHTarget.Method) throws -> LoopbackClient<DoHConnection> {
        let target = try #require(DoHTarget(authority: "dns.example:\(port)", path: "/dns-query", method: method))
        return try LoopbackClient(
            DoHConnection(
                certificates.client(certificates.authority(), protocols: ["h2"]), target: target, at: Loopback.now),
            port: port)
    }

    /// unbound with a zone of its own, and one that it has to ask `backend` about.
    private func unbound(dot: UInt16, doh: UInt16, backend: UInt16) throws -> ServerProcess {
        let path = certificates.path("unbound.conf")
        try write(
            """
            server:
                interface: 127.0.0.1@\(dot)
                interface: 127.0.0.1@\(doh)
                tls-port: \(dot)
                https-port: \(doh)
                http-endpoint: "/dns-query"
                http-max-streams: 20
                tls-service-key: "\(certificates.path("good.key"))"
                tls-service-pem: "\(certificates.path("good.pem"))"
                username: ""
                chroot: ""
                directory: "\(certificates.folder)"
                pidfile: ""
                use-syslog: no
                do-daemonize: no
                do-not-query-localhost: no
                module-config: "iterator"
                qname-minimisation: no
                local-zone: "fast.example." redirect
                local-data: "fast.example. 60 A 192.0.2.7"
            remote-control:
                control-enable: no
            forward-zone:
                name: "slow.example."
                forward-addr: 127.0.0.1@\(backend)
            """, to: path)
        return try ServerProcess(
            ["/usr/sbin/unbound", "-d", "-c", path], log: certificates.path("unbound.log"), ports: [dot, doh])
    }

    private func dnsdist(dot: UInt16, doh: UInt16) throws -> ServerProcess {
        let path = certificates.path("dnsdist.conf")
        let files = "\"\(certificates.path("good.pem"))\", \"\(certificates.path("good.key"))\""
        try write(
            """
            setSecurityPollSuffix("")
            setLocal("127.0.0.1:\(try Loopback.freePort())")
            addTLSLocal("127.0.0.1:\(dot)", \(files))
            addDOHLocal("127.0.0.1:\(doh)", \(files), "/dns-query")
            addAction(AllRule(), SpoofAction("192.0.2.7"))
            """, to: path)
        return try ServerProcess(
            ["/usr/bin/dnsdist", "--supervised", "--disable-syslog", "-C", path],
            log: certificates.path("dnsdist.log"), ports: [dot, doh])
    }

    /// Every answer is to its own query, and has the address that the servers give.
    private func check(_ events: [ConnectionEvent], _ numbers: ClosedRange<UInt64>) {
        let answers = events.answers
        #expect(events.failures.isEmpty)
        for number in numbers {
            guard let message = answers[number] else {
                Issue.record("no answer to \(number)")
                continue
            }
            #expect(name(in: message) == "n\(number).fast.example" && message.starts(with: [0xAB, 0xCD]))
            #expect(message[3] & 0xF == 0 && message[7] == 1)
            #expect(message.indices.contains { message[$0...].starts(with: [192, 0, 2, 7]) })
        }
    }

    private func ask<Connection: DNSConnection & ~Copyable>(
        _ client: inout LoopbackClient<Connection>, _ numbers: ClosedRange<UInt64>
    ) throws {
        for number in numbers { try client.send(query("n\(number).fast.example", edns: true), number) }
        try client.run { Set($0.answers.keys).union($0.failures.keys).isSuperset(of: numbers) }
        check(client.events, numbers)
    }

    @Test(arguments: ["unbound", "dnsdist"])
    func `many queries on one connection are all answered`(_ server: String) throws {
        let (dotPort, dohPort) = (try Loopback.freePort(), try Loopback.freePort())
        let process =
            server == "unbound"
            ? try unbound(dot: dotPort, doh: dohPort, backend: 1) : try dnsdist(dot: dotPort, doh: dohPort)
        try withExtendedLifetime(process) {
            var dot = try dot(dotPort)
            try ask(&dot, 1...100)
            try ask(&dot, 101...150)
            var post = try doh(dohPort, .post)
            try ask(&post, 1...100)
            try ask(&post, 101...120)
            var get = try doh(dohPort, .get)
            try ask(&get, 1...40)
        }
    }

    @Test func `a query that the server waits for blocks none behind it`() throws {
        let (dotPort, dohPort) = (try Loopback.freePort(), try Loopback.freePort())
        // The socket of the server that unbound asks: nothing answers there.
        let backend = try Loopback.bound(SOCK_DGRAM)
        defer { _ = close(backend.socket) }
        let process = try unbound(dot: dotPort, doh: dohPort, backend: backend.port)
        try withExtendedLifetime(process) {
            var dot = try dot(dotPort)
            try dot.send(query("a.slow.example"), 999)
            try ask(&dot, 1...20)
            expect(dot.events.answers[999] == nil && dot.connection.exchangeCount == 1)
            var doh = try doh(dohPort, .post)
            try doh.send(query("b.slow.example"), 999)
            try ask(&doh, 1...20)
            expect(doh.events.answers[999] == nil && doh.connection.exchangeCount == 1)
        }
    }

    @Test func `a limit of streams is kept to, and what is beyond waits`() throws {
        let (dotPort, dohPort) = (try Loopback.freePort(), try Loopback.freePort())
        let process = try unbound(dot: dotPort, doh: dohPort, backend: 1)
        try withExtendedLifetime(process) {
            var client = try doh(dohPort, .post)
            // All of them before the server has said that it allows 20.
            for number in 1...100 as ClosedRange<UInt64> {
                try client.send(query("n\(number).fast.example"), number)
            }
            try client.run { $0.answers.count + $0.failures.count == 100 }
            check(client.events, 1...100)
            expect(client.connection.exchangeLimit == 20)
        }
    }

    @Test func `a server that ends gives back what is under way, to be asked again`() throws {
        let (dotPort, dohPort) = (try Loopback.freePort(), try Loopback.freePort())
        let backend = try Loopback.bound(SOCK_DGRAM)
        defer { _ = close(backend.socket) }
        var process: ServerProcess? = try unbound(dot: dotPort, doh: dohPort, backend: backend.port)
        var dot = try dot(dotPort)
        try ask(&dot, 1...1)
        var doh = try doh(dohPort, .post)
        try ask(&doh, 1...1)
        try dot.send(query("a.slow.example"), 2)
        try doh.send(query("a.slow.example"), 2)
        expect(process != nil)
        process = nil
        try dot.run { $0.end != nil }
        try doh.run { $0.end != nil }
        expect(dot.events.failures == [2: .closedByServer] && doh.events.failures == [2: .closedByServer])
    }

    @Test func `a server that has stopped is found dead at the deadline of the first query`() throws {
        let (dotPort, dohPort) = (try Loopback.freePort(), try Loopback.freePort())
        let process = try unbound(dot: dotPort, doh: dohPort, backend: 1)
        var dot = try dot(dotPort)
        try ask(&dot, 1...1)
        var doh = try doh(dohPort, .post)
        try ask(&doh, 1...1)
        process.stop()
        try meetSilence(&dot)
        try meetSilence(&doh)
    }

    private func meetSilence<Connection: DNSConnection & ~Copyable>(_ client: inout LoopbackClient<Connection>) throws {
        try client.send(query("n2.fast.example"), 2, for: .milliseconds(200))
        try client.send(query("n3.fast.example"), 3, for: .seconds(60))
        try client.run { $0.end != nil }
        expect(client.events.failures == [2: .timedOut, 3: .silent] && client.events.end == .silent)
    }

    @Test func `a session is gone on with by the next connection`() throws {
        let (dotPort, dohPort) = (try Loopback.freePort(), try Loopback.freePort())
        let process = try unbound(dot: dotPort, doh: dohPort, backend: 1)
        try withExtendedLifetime(process) {
            let context = try TLSClientContext(certificates.authority(), protocols: ["dot"])
            var first = try LoopbackClient(
                DoTConnection(try TLSClient(context, identity: .name("dns.example")), at: Loopback.now), port: dotPort)
            try ask(&first, 1...1)
            let next = try TLSClient(
                context, identity: .name("dns.example"), resuming: first.connection.resumption)
            var second = try LoopbackClient(DoTConnection(next, at: Loopback.now), port: dotPort)
            try ask(&second, 1...1)
            expect(!first.connection.isResumed && second.connection.isResumed)
        }
    }

    @Test func `a server is known by its address too`() throws {
        let (dotPort, dohPort) = (try Loopback.freePort(), try Loopback.freePort())
        let process = try dnsdist(dot: dotPort, doh: dohPort)
        try withExtendedLifetime(process) {
            let context = try TLSClientContext(certificates.authority(), protocols: ["dot"])
            let stream = try TLSClient(context, identity: .address(.v4(IPv4Address(127, 0, 0, 1))))
            var client = try LoopbackClient(DoTConnection(stream, at: Loopback.now), port: dotPort)
            try ask(&client, 1...5)
        }
    }
}
