import CLinux
import Glibc
import OpenMetrics
import Provider
import Testing

@testable import LinuxHost

/// A server with its loop. All of it runs on the test's thread, when the test says so.
private struct MetricsRig: ~Copyable {
    var loop: EventLoop
    var server: MetricsServer
    var events = EventBuffer(capacity: 32)

    init(_ addresses: String...) throws {
        let places = addresses.compactMap { AddressAndPort(parsing: $0) }
        let loop = try EventLoop()
        var server = MetricsServer(tokens: 100..<200)
        try server.listen(at: places, loop)
        self.loop = loop
        self.server = server
    }

    mutating func listen(_ addresses: [String]) throws {
        try server.listen(at: addresses.compactMap { AddressAndPort(parsing: $0) }, loop)
    }

    /// Serves what comes within a moment. Each request is answered with a page at /metrics.
    mutating func turn() throws {
        try loop.wait(until: HostClock.now() + .milliseconds(5), into: &events)
        for index in 0..<events.count {
            guard case .request(let request, let client) = server.handle(events[index], loop) else { continue }
            let page = String(repeating: "a line of the page\n", count: 10_000)
            server.answer(client, request.response(pageAt: "/metrics", contentType: "text/x") { page }, loop)
        }
    }

    /// Serves what comes until so many clients are connected.
    mutating func serve(untilClients count: Int) throws {
        let deadline = HostClock.now() + patience
        while server.clientCount != count {
            if HostClock.now() >= deadline { throw Impatience(awaited: "\(count) clients") }
            try turn()
        }
    }
}

/// What a client has got so far, and whether that was all.
private struct Reading {
    var text = ""
    var isWhole = false

    mutating func read(_ socket: borrowing ClientSocket) throws {
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe recv(socket.descriptor.rawValue, &piece, piece.count, Int32(MSG_DONTWAIT))
            if count < 0, errno == EAGAIN { return }
            if try systemCall("recv", { count }) == 0 {
                isWhole = true
                return
            }
            text += String(decoding: piece[..<count], as: UTF8.self)
        }
    }
}

@Suite struct MetricsServerTests {
    private static let address = "127.0.0.1:9153"
    private let request = Array("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".utf8)

    private func answer(_ rig: inout MetricsRig, _ client: borrowing ClientSocket) throws -> String {
        var reading = Reading()
        let deadline = HostClock.now() + patience
        while !reading.isWhole {
            if HostClock.now() >= deadline { throw Impatience(awaited: "an answer and the end") }
            try rig.turn()
            try reading.read(client)
        }
        return reading.text
    }

    @Test func aLongPageIsSentWholeAndTheConnectionEnds() throws {
        try aloneInNewNetworkNamespace {
            var rig = try MetricsRig(Self.address, "[::1]:9153")
            for target in [Self.address, "[::1]:9153"] {
                let client = try ClientSocket(connectedTo: target, receiveBuffer: 4_096)
                try client.write(request)
                let text = try answer(&rig, client)
                #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.contains("\r\nContent-Length: 190000\r\n"))
                #expect(text.utf8.count > 190_000 && text.hasSuffix("page\n"))
                client.finish()
            }
            try rig.serve(untilClients: 0)
        }
    }

    @Test func aRequestInPiecesIsOneAndWhatFollowsItIsThrownAway() throws {
        try aloneInNewNetworkNamespace {
            var rig = try MetricsRig(Self.address)
            let client = try ClientSocket(connectedTo: Self.address)
            for byte in request {
                try client.write([byte])
                try rig.loop.wait(until: HostClock.now() + patience, into: &rig.events)
                for index in 0..<rig.events.count {
                    let outcome = rig.server.handle(rig.events[index], rig.loop)
                    guard case .request(_, let token) = outcome else { continue }
                    try client.write([UInt8](repeating: 0x78, count: 10_000))
                    rig.server.answer(token, HTTPResponse(.notFound), rig.loop)
                }
            }
            let text = try answer(&rig, client)
            #expect(text.hasSuffix("\r\n\r\n404 Not Found\n"))
        }
    }

    @Test func whatIsNoRequestIsRefused() throws {
        try aloneInNewNetworkNamespace {
            var rig = try MetricsRig(Self.address)
            let client = try ClientSocket(connectedTo: Self.address)
            try client.write(Array("nonsense\r\n\r\n".utf8))
            #expect(try answer(&rig, client).hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        }
    }

    @Test func whoHoldsAConnectionKeepsNobodyOutAndGoesInTime() throws {
        try aloneInNewNetworkNamespace {
            var rig = try MetricsRig(Self.address)
            var idle = ClientSockets()
            for _ in 0..<MetricsServer.maximumClients { idle.append(try ClientSocket(connectedTo: Self.address)) }
            try rig.serve(untilClients: MetricsServer.maximumClients)
            let client = try ClientSocket(connectedTo: Self.address)
            try client.write(request)
            #expect(try answer(&rig, client).hasPrefix("HTTP/1.1 200 OK\r\n"))
            guard let deadline = rig.server.nextDeadline else { throw Impatience(awaited: "a deadline") }
            #expect(deadline <= HostClock.now() + MetricsServer.timeLimit)
            rig.server.handleDeadlines(at: deadline, rig.loop)
            #expect(rig.server.clientCount < MetricsServer.maximumClients)
            rig.server.handleDeadlines(at: deadline + MetricsServer.timeLimit, rig.loop)
            #expect(rig.server.clientCount == 0 && rig.server.nextDeadline == nil)
            let next = idle.next(of: 3)
            #expect(next == .end)
        }
    }

    @Test func otherAddressesAreListenedAtOrNothingChanges() throws {
        try aloneInNewNetworkNamespace {
            var rig = try MetricsRig(Self.address)
            let taken = try MetricsRig("127.0.0.1:9154")
            let failure = #expect(throws: StartFailure.self) { try rig.listen(["127.0.0.1:9155", "127.0.0.1:9154"]) }
            #expect(failure?.description.hasPrefix("cannot listen on 127.0.0.1:9154 for metrics: ") ?? false)
            #expect(rig.server.addresses.map(\.description) == [Self.address])
            #expect(throws: (any Error).self) { _ = try ClientSocket(connectedTo: "127.0.0.1:9155") }
            // One that overlaps with the one before.
            try rig.listen(["0.0.0.0:9153"])
            let client = try ClientSocket(connectedTo: "127.0.0.9:9153")
            try client.write(request)
            #expect(try answer(&rig, client).hasPrefix("HTTP/1.1 200 OK\r\n"))
            try rig.listen([])
            #expect(throws: (any Error).self) { _ = try ClientSocket(connectedTo: Self.address) }
            #expect(taken.server.clientCount == 0)
        }
    }
}
