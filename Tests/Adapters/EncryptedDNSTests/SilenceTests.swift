import DNSProxy
import EncryptedDNS
import Provider
import SecureStream
import TestSupport
import Testing

/// Connections to servers that have gone without a word: found within the deadline of the first query that meets the silence.
@Suite struct SilenceTests {
    private func dot() throws -> Link<DoTConnection> {
        let certificates = Certificates.shared
        return Link(
            DoTConnection(
                try certificates.client(certificates.authority(), protocols: ["dot"]), at: seconds(1)),
            try certificates.server("good", protocols: ["dot"]))
    }

    private func doh() throws -> Link<DoHConnection> {
        let certificates = Certificates.shared
        let target = try #require(DoHTarget(authority: "dns.example", path: "/dns-query"))
        return Link(
            try DoHConnection(
                certificates.client(certificates.authority(), protocols: ["h2"]), target: target, at: seconds(1)),
            try certificates.server("good", protocols: ["h2"]))
    }

    /// Polls as a host does until nothing is due before `end`; no deadline may be left behind.
    private func poll<Connection: DNSConnection & ~Copyable>(_ connection: inout Connection, to end: Instant) {
        var rounds = 0
        while let next = connection.nextDeadline, next <= end {
            connection.handleDeadlines(at: next)
            rounds += 1
            expect(connection.nextDeadline.map { $0 > next } ?? true)
            if rounds > 100 {
                Issue.record("deadlines without end")
                return
            }
        }
    }

    @Test func `a query that meets silence is overdue at half its time, and the connection dead at its end`() throws {
        var link = try dot()
        link.run()
        try link.connection.send(query("a.example"), 1, at: seconds(2), deadline: seconds(4))
        // A later query moves nothing.
        try link.connection.send(query("b.example"), 2, at: seconds(2.9), deadline: seconds(7))
        poll(&link.connection, to: seconds(2.99))
        expect(link.connection.takeEvents().isEmpty && link.connection.canTakeMore)
        poll(&link.connection, to: seconds(3))
        expect(link.connection.takeEvents() == [.overdue(exchange(1))] && !link.connection.canTakeMore)
        poll(&link.connection, to: seconds(4))
        expect(
            link.connection.takeEvents() == [
                .failed(exchange(1), .timedOut), .failed(exchange(2), .silent), .closed(.silent),
            ])
        #expect(ConnectionError.silent.isRetryable && !ConnectionError.timedOut.isRetryable)
        expect(link.connection.nextDeadline == nil)
    }

    @Test func `what came before the query went out is no sign of life`() throws {
        var link = try dot()
        // It waits for the handshake, which is not over before the server has said a lot.
        try link.connection.send(query("a.example"), 1, at: seconds(1), deadline: seconds(3))
        link.run()
        poll(&link.connection, to: seconds(3))
        expect(
            link.connection.takeEvents() == [
                .overdue(exchange(1)), .failed(exchange(1), .timedOut), .closed(.silent),
            ])
    }

    @Test func `a slow answer is no silence: the rest goes on, and an answer clears a suspicion`() throws {
        var link = try dot()
        link.run()
        try link.connection.send(query("slow.example"), 1, at: seconds(2))
        poll(&link.connection, to: seconds(3.5))
        expect(link.connection.takeEvents() == [.overdue(exchange(1))])
        try link.connection.send(query("fast.example"), 2, at: seconds(4))
        link.run(at: seconds(4))
        // IDs of the wire are the connection's own.
        try link.write(framed(answer(to: query("fast.example"), id: 2)), at: seconds(4))
        expect(link.events.answers == [2: answer(to: query("fast.example"))] && link.connection.canTakeMore)
        poll(&link.connection, to: seconds(7))
        expect(link.connection.takeEvents() == [.failed(exchange(1), .timedOut)] && !link.connection.isOver)
    }

    @Test func `HTTP/2 asks by PING first, and its answer is a sign of life`() throws {
        let http = ScriptedHTTPServer()
        var link = try doh()
        link.run()
        try link.write(settings())
        try link.connection.send(query("a.example"), 1, at: seconds(2))
        link.run(at: seconds(2))
        poll(&link.connection, to: seconds(2.75))
        link.run(at: seconds(2.75))
        http.read(link.decrypted)
        let ping = try #require(http.frames.last { $0.type == 6 })
        try link.write(frame(6, flags: 1, ping.payload), at: seconds(2.8))
        poll(&link.connection, to: seconds(6.9))
        expect(link.connection.takeEvents().isEmpty && link.connection.canTakeMore)
        poll(&link.connection, to: seconds(7))
        expect(link.connection.takeEvents() == [.failed(exchange(1), .timedOut)] && !link.connection.isOver)
    }

    @Test func `HTTP/2 without an answer to PING is dead`() throws {
        var link = try doh()
        link.run()
        try link.write(settings())
        try link.connection.send(query("a.example"), 1, at: seconds(2))
        poll(&link.connection, to: seconds(7))
        expect(
            link.connection.takeEvents().suffix(3) == [
                .overdue(exchange(1)), .failed(exchange(1), .timedOut), .closed(.silent),
            ])
    }

    @Test func `a handshake that takes too long ends the connection`() throws {
        var link = try dot()
        try link.connection.send(query("a.example"), 1, at: seconds(1), deadline: seconds(60))
        poll(&link.connection, to: seconds(4))
        expect(link.connection.takeEvents().suffix(2) == [.failed(exchange(1), .timedOut), .closed(.timedOut)])
    }

    @Test func `an idle connection is closed in order`() throws {
        var link = try doh()
        link.run()
        try link.write(settings())
        poll(&link.connection, to: seconds(30))
        expect(!link.connection.isOver)
        poll(&link.connection, to: seconds(32))
        expect(link.connection.takeEvents() == [.closed(.idle)])
        let http = ScriptedHTTPServer()
        link.run()
        http.read(link.decrypted)
        #expect(http.frames.last?.type == 7)
        expect(link.server.state == .established || link.server.state == .closed)
    }

    @Test func `when the path changes, everything is given back`() throws {
        var link = try dot()
        try link.connection.send(query("a.example"), 1)
        link.connection.abandon()
        expect(link.connection.takeEvents() == [.failed(exchange(1), .abandoned), .closed(.abandoned)])
        #expect(ConnectionError.abandoned.isRetryable)
    }
}
