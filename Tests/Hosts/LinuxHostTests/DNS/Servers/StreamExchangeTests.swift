import CLinux
import DNSProxy
import Glibc
import Provider
import Testing

@testable import LinuxHost

@Suite struct StreamExchangeTests {
    /// Reads from a connection until so many messages are there.
    private func messages(
        _ count: Int, from connection: borrowing LoopbackConnection, _ driver: inout ServerDriver
    ) throws -> [[UInt8]] {
        var bytes: [UInt8] = []
        let descriptor = connection.descriptor.rawValue
        try driver.run("\(count) queries on a connection") { _ in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let read = unsafe recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if read > 0 { bytes += buffer[..<read] }
            return framedMessages(in: bytes).count >= count
        }
        return framedMessages(in: bytes)
    }

    private func answer(
        _ count: Int, on connection: borrowing LoopbackConnection, _ driver: inout ServerDriver
    ) throws {
        let ended = driver.client.endedCount
        let queries = try messages(count, from: connection, &driver)
        // In the reverse order, which the client must not mind.
        try connection.write(queries.reversed().flatMap { framed(wireAnswer(to: $0)) })
        try driver.run("the answers") { $0.endedCount == ended + count }
    }

    @Test func `queries share one connection and are answered in any order`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        for number in 0..<20 { driver.ask("n\(number).example", by: .tcp) }
        let connection = try server.accept()
        try answer(20, on: connection, &driver)
        for number in 0..<20 { driver.ask("m\(number).example", by: .tcp) }
        try answer(20, on: connection, &driver)
        #expect(driver.client.answers.count == 40 && driver.client.failures.isEmpty)
        #expect(driver.servers.status[0].openConnectionCount == 1)
    }

    @Test func `a datagram server is asked by TCP when that is wanted`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.udp, server.port)])
        driver.ask("a.example", by: .tcp)
        let connection = try server.accept()
        try answer(1, on: connection, &driver)
        #expect(driver.client.answers.count == 1)
    }

    @Test func `a connection that the server ended while idle is replaced without anybody noticing`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        driver.ask("a.example", by: .tcp)
        var connection: LoopbackConnection? = try server.accept()
        if let open = connection.take() { try answer(1, on: open, &driver) }
        // What was used a moment ago is kept warm: another connection is opened by itself.
        let next = try {
            try driver.run("the end of the connection") { _ in
                var entry = pollfd(fd: server.descriptor.rawValue, events: Int16(POLLIN), revents: 0)
                return unsafe poll(&entry, 1, 0) == 1
            }
            return try server.accept()
        }()
        driver.ask("b.example", by: .tcp)
        try answer(1, on: next, &driver)
        #expect(driver.client.answers.count == 2 && driver.client.failures.isEmpty)
    }

    @Test func `what is under way when the server ends fails once, and is to be asked again`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        let id = driver.ask("a.example", by: .tcp)
        do {
            let connection = try server.accept()
            _ = try messages(1, from: connection, &driver)
        }
        try driver.run("the failure") { $0.endedCount == 1 }
        #expect(driver.client.failures == [id: [.connectionClosed]])
    }

    @Test func `a fresh connection is opened for who needs one`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        driver.ask("a.example", by: .tcp)
        let first = try server.accept()
        _ = try messages(1, from: first, &driver)
        let id = driver.ask("a.example", by: .tcp, isFresh: true)
        let second = try server.accept()
        try answer(1, on: second, &driver)
        #expect(Set(driver.client.answers.keys) == [id])
        #expect(driver.servers.status[0].openConnectionCount == 2)
    }

    @Test func `the next address is connected to when one refuses`() throws {
        let server = try LoopbackServer(SOCK_STREAM, "127.0.0.2")
        var driver = try ServerDriver([
            upstream(.tcp, "dns.example", server.port, addresses: ["127.0.0.3", "127.0.0.2"])
        ])
        driver.ask("a.example", by: .tcp)
        try driver.run("a connection at the second address") { _ in
            var entry = pollfd(fd: server.descriptor.rawValue, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&entry, 1, 0) == 1
        }
        let connection = try server.accept()
        try answer(1, on: connection, &driver)
        #expect(driver.client.failures.isEmpty)
    }

    @Test func `an address that says nothing is raced by the next`() throws {
        try onThreadOfItsOwn {
            try inNewNetworkNamespace {
                // Nobody at the other end has the address.
                try run("ip", "link", "add", "void", "type", "veth", "peer", "name", "end")
                try run("ip", "address", "add", "192.0.2.2/24", "dev", "void")
                try run("ip", "link", "set", "void", "up")
                try run("ip", "link", "set", "end", "up")
                let server = try LoopbackServer(SOCK_STREAM)
                var driver = try ServerDriver([
                    upstream(.tcp, "dns.example", server.port, addresses: ["192.0.2.1", "127.0.0.1"])
                ])
                let start = HostClock.now()
                driver.ask("a.example", by: .tcp)
                try driver.run("a connection at the second address") { _ in
                    var entry = pollfd(fd: server.descriptor.rawValue, events: Int16(POLLIN), revents: 0)
                    return unsafe poll(&entry, 1, 0) == 1
                }
                let connection = try server.accept()
                try answer(1, on: connection, &driver)
                #expect(driver.client.failures.isEmpty)
                #expect(Interval.milliseconds(450) < HostClock.now().since(start))
                #expect(HostClock.now().since(start) < .seconds(3))
            }
        }
    }

    @Test func `nobody listens: the exchange fails at once`() throws {
        let port = try LoopbackServer(SOCK_STREAM).port
        var driver = try ServerDriver([upstream(.tcp, port)])
        let id = driver.ask("a.example", by: .tcp)
        try driver.run("the failure") { $0.endedCount == 1 }
        #expect(driver.client.failures == [id: [.unreachable]])
        #expect(driver.servers.status[0].lastProblem == .system(SystemCallError("connect", errno: ECONNREFUSED)))
    }

    @Test func `on another network all connections are given up, and their exchanges end`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        let id = driver.ask("a.example", by: .tcp)
        let first = try server.accept()
        _ = try messages(1, from: first, &driver)
        driver.servers.resetConnections(at: HostClock.now(), driver.loop)
        driver.servers.flush(driver.loop)
        #expect(driver.client.failures == [id: [.connectionClosed]])
        let second = try server.accept()
        driver.ask("b.example", by: .tcp)
        try answer(1, on: second, &driver)
        #expect(driver.client.answers.count == 1 && driver.servers.status[0].openConnectionCount == 1)
    }

    @Test func `more queries than a connection takes go by others, and none is lost`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        for number in 0..<500 { driver.ask("n\(number).example", by: .tcp) }
        let first = try server.accept()
        let second = try acceptWhileRunning(server, &driver)
        let third = try acceptWhileRunning(server, &driver)
        var done = 0
        try driver.run("all answers") { client in
            for descriptor in [first.descriptor.rawValue, second.descriptor.rawValue, third.descriptor.rawValue] {
                var buffer = [UInt8](repeating: 0, count: 65_536)
                let read = unsafe recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard read > 0 else { continue }
                // Each write of the client holds whole messages.
                let queries = framedMessages(in: Array(buffer[..<read]))
                done += queries.count
                let answers = queries.flatMap { framed(wireAnswer(to: $0)) }
                _ = unsafe send(descriptor, answers, answers.count, Int32(MSG_NOSIGNAL))
            }
            return client.endedCount == 500
        }
        #expect(driver.client.failures.isEmpty)
        #expect(done == 500 && driver.client.answers.count == 500)
    }

    private func acceptWhileRunning(
        _ server: borrowing LoopbackServer, _ driver: inout ServerDriver
    ) throws -> LoopbackConnection {
        let descriptor = server.descriptor.rawValue
        try driver.run("another connection") { _ in
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&entry, 1, 0) == 1
        }
        return try server.accept()
    }

    @Test func `a connection that lives and brings no answers is asked nothing more until it does`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        let id = driver.ask("a.example", by: .tcp)
        let first = try server.accept()
        _ = try messages(1, from: first, &driver)
        // As if the other attempt had won two seconds later.
        driver.servers.cancel(id, at: HostClock.now() + .seconds(2), driver.loop)
        driver.ask("b.example", by: .tcp)
        let second = try acceptWhileRunning(server, &driver)
        try answer(1, on: second, &driver)
        driver.ask("c.example", by: .tcp)
        try answer(1, on: second, &driver)
        #expect(driver.client.answers.count == 2 && driver.client.failures.isEmpty)
    }

    @Test func `a cancelled exchange ends without a word, wherever it is`() throws {
        let server = try LoopbackServer(SOCK_STREAM)
        var driver = try ServerDriver([upstream(.tcp, server.port)])
        let waiting = driver.ask("a.example", by: .tcp)
        driver.servers.cancel(waiting, at: HostClock.now(), driver.loop)
        let sent = driver.ask("b.example", by: .tcp)
        let connection = try server.accept()
        let queries = try messages(1, from: connection, &driver)
        driver.servers.cancel(sent, at: HostClock.now(), driver.loop)
        try connection.write(framed(wireAnswer(to: queries[0])))
        driver.ask("c.example", by: .tcp)
        try answer(1, on: connection, &driver)
        #expect(driver.client.endedCount == 1)
    }
}
