import CLinux
import Glibc
import Provider
import TestSupport
import Testing

@testable import LinuxHost

/// A server with its loop, and what came of its events.
private final class ServedSocket {
    static let listenerToken: UInt64 = 1
    var channel = InProcessPrivilegedChannel(PrivilegedService())
    var loop: EventLoop
    var server: AppMessageServer
    var events = EventBuffer(capacity: 4)

    init(_ path: String, clients: Range<UInt64> = 100..<1_000_000) throws {
        loop = try EventLoop()
        server = AppMessageServer(
            try channel.openMessageSocket(at: path), listenerToken: Self.listenerToken, clientTokens: clients)
        try server.register(with: loop)
    }

    /// Handles events until one comes to something that a test looks for.
    func next(_ awaited: String, until isAwaited: (AppMessageServer.Outcome) -> Bool) throws {
        let deadline = HostClock.now() + patience
        while HostClock.now() < deadline {
            try loop.wait(until: deadline, into: &events)
            for index in 0..<events.count {
                let outcome = try handle(events[index])
                if isAwaited(outcome) { return }
            }
        }
        throw Impatience(awaited: awaited)
    }

    /// The next request.
    func nextRequest() throws -> (id: AppMessageID, request: ControlRequest) {
        var result: (AppMessageID, ControlRequest)?
        try next("a request") { outcome in
            guard case .request(let id, let request) = outcome else { return false }
            result = (id, request)
            return true
        }
        return try #require(result)
    }

    /// Handles what has happened already.
    func handleAll() throws {
        while true {
            try loop.wait(until: Instant(nanoseconds: 0), into: &events)
            if events.count == 0 { return }
            for index in 0..<events.count { _ = try handle(events[index]) }
        }
    }

    func reply(_ id: AppMessageID, _ line: String) -> AppMessageServer.Outcome { server.reply(id, line, loop) }

    private func handle(_ event: Event) throws -> AppMessageServer.Outcome {
        if event.token == Self.listenerToken {
            server.accept(loop)
            return .nothing
        }
        let isClient = server.owns(event.token)
        #expect(isClient)
        return server.serve(event.token, loop)
    }
}

/// Sends all of a text.
private func send(_ text: String, to socket: borrowing FileDescriptor) throws {
    try WholeFile.write(Array(text.utf8), to: socket)
}

/// What comes in up to the next end of a line; nil when the other end has closed.
private func readLine(_ socket: borrowing FileDescriptor) throws -> String? {
    var line: [UInt8] = []
    while true {
        try awaitReady(socket.rawValue, "an answer")
        var byte: UInt8 = 0
        let number = socket.rawValue
        if try systemCall("read", { unsafe read(number, &byte, 1) }) == 0 { return nil }
        line.append(byte)
        if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
    }
}

private let ask = "{\"status\": {}}\n"

@Suite struct AppMessageServerTests {
    @Test func answersOneRequestAfterTheOther() throws {
        try inTemporaryFolder { folder in
            let socket = try ServedSocket("\(folder)/control.sock")
            let client = try connectUNIX("\(folder)/control.sock")
            // Three at once, the last of them in two parts.
            try send(ask + "nonsense\n{\"status\": {\"af", to: client)
            let first = try socket.nextRequest()
            #expect(first.request == .status(after: nil, timeLimit: .seconds(0)))
            // The next is read when the one before is answered.
            guard case .invalid(let second, .notJSON) = socket.reply(first.id, "one\n") else {
                Issue.record("no second request")
                return
            }
            #expect(second != first.id)
            #expect(try readLine(client) == "one\n")
            #expect(socket.reply(second, "two\n") == .nothing)
            #expect(try readLine(client) == "two\n")
            try send("ter\": 5}}\n", to: client)
            let third = try socket.nextRequest()
            #expect(third.request == .status(after: 5, timeLimit: .seconds(0)))
            // An answer is given once.
            #expect(socket.reply(third.id, "three\n") == .nothing)
            #expect(socket.reply(third.id, "three\n") == .nothing)
            #expect(try readLine(client) == "three\n")
            #expect(staysQuiet(client.rawValue))
        }
    }

    @Test func answersGoToThoseWhoAsked() throws {
        try inTemporaryFolder { folder in
            let socket = try ServedSocket("\(folder)/control.sock")
            let early = try connectUNIX("\(folder)/control.sock")
            try send(ask, to: early)
            let first = try socket.nextRequest()
            let late = try connectUNIX("\(folder)/control.sock")
            try send("{\"status\": {\"after\": 1}}\n", to: late)
            let second = try socket.nextRequest()
            #expect(socket.reply(second.id, "late\n") == .nothing)
            #expect(socket.reply(first.id, "early\n") == .nothing)
            #expect(try readLine(early) == "early\n")
            #expect(try readLine(late) == "late\n")
        }
    }

    @Test func tellsWhoLeavesWithoutAnAnswer() throws {
        try inTemporaryFolder { folder in
            let socket = try ServedSocket("\(folder)/control.sock")
            let id: AppMessageID
            do {
                let client = try connectUNIX("\(folder)/control.sock")
                try send(ask, to: client)
                id = try socket.nextRequest().id
            }
            try socket.next("the leaver") { $0 == .left(id) }
            // The provider may have answered meanwhile.
            #expect(socket.reply(id, "too late\n") == .nothing)
            // Who leaves without having asked is not worth a word.
            do { _ = try connectUNIX("\(folder)/control.sock") }
            try socket.handleAll()
            let next = try connectUNIX("\(folder)/control.sock")
            try send(ask, to: next)
            #expect(try socket.nextRequest().id != id)
        }
    }

    @Test func aLineThatIsTooLongEndsTheConnection() throws {
        try inTemporaryFolder { folder in
            let socket = try ServedSocket("\(folder)/control.sock")
            let client = try connectUNIX("\(folder)/control.sock")
            // One as long as may be, its end included, is read.
            try send(String(repeating: "x", count: ControlRequest.maximumByteCount - 1) + "\n", to: client)
            var invalid: AppMessageID?
            try socket.next("a line that is no request") { outcome in
                if case .invalid(let id, .notJSON) = outcome { invalid = id }
                return invalid != nil
            }
            #expect(socket.reply(try #require(invalid), "so\n") == .nothing)
            #expect(try readLine(client) == "so\n")
            try send(String(repeating: "x", count: ControlRequest.maximumByteCount + 1), to: client)
            try eventually("the end of the connection") {
                try socket.handleAll()
                var entry = pollfd(fd: client.rawValue, events: Int16(POLLIN), revents: 0)
                return unsafe poll(&entry, 1, 0) == 1 ? () : nil
            }
            // What was not read resets the connection.
            var byte: UInt8 = 0
            #expect(unsafe read(client.rawValue, &byte, 1) <= 0)
        }
    }

    @Test func aReplyThatTheSocketDoesNotTakeAtOnceComesWhole() throws {
        try inTemporaryFolder { folder in
            let socket = try ServedSocket("\(folder)/control.sock")
            let client = try connectUNIX("\(folder)/control.sock")
            var small: Int32 = 1
            #expect(unsafe setsockopt(client.rawValue, SOL_SOCKET, SO_SNDBUF, &small, 4) == 0)
            try send(ask + ask, to: client)
            let first = try socket.nextRequest()
            let long = String(repeating: "y", count: 250_000) + "\n"
            guard case .request(let second, _) = socket.reply(first.id, long) else {
                Issue.record("no second request")
                return
            }
            var received: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 65_536)
            try eventually("the reply") {
                try socket.handleAll()
                let count = unsafe recv(client.rawValue, &chunk, chunk.count, Int32(MSG_DONTWAIT))
                if count > 0 { received += chunk[..<count] }
                return received.count >= long.utf8.count ? () : nil
            }
            #expect(String(decoding: received, as: UTF8.self) == long)
            #expect(socket.reply(second, "short\n") == .nothing)
            #expect(try readLine(client) == "short\n")
        }
    }

    @Test func aReplyThatIsTooLongEndsTheConnection() throws {
        try inTemporaryFolder { folder in
            let socket = try ServedSocket("\(folder)/control.sock")
            let client = try connectUNIX("\(folder)/control.sock")
            try send(ask, to: client)
            let request = try socket.nextRequest()
            #expect(socket.reply(request.id, String(repeating: "z", count: 300_000) + "\n") == .nothing)
            #expect(try readLine(client) == nil)
        }
    }

    @Test func oneTooManyIsTurnedAway() throws {
        try inTemporaryFolder { folder in
            let socket = try ServedSocket("\(folder)/control.sock", clients: 10..<12)
            let first = try connectUNIX("\(folder)/control.sock")
            let second = try connectUNIX("\(folder)/control.sock")
            let third = try connectUNIX("\(folder)/control.sock")
            try socket.handleAll()
            #expect(try readLine(third) == nil)
            try send(ask, to: second)
            let request = try socket.nextRequest()
            #expect(socket.reply(request.id, "you\n") == .nothing)
            #expect(try readLine(second) == "you\n")
            socket.server.removeAll()
            #expect(try readLine(first) == nil)
            #expect(try readLine(second) == nil)
        }
    }
}
