import DNSProxy
import EncryptedDNS
import FuzzSupport
import Provider

/// What a server says on an HTTP/2 connection on which eight queries are under way. The first byte says how the rest is cut into
/// pieces, and what the client does between them.
///
/// Without TLS, which would hide every byte: nghttp2 and what is around it see the input as it is.
@c(LLVMFuzzerTestOneInput)
public func fuzzDoH(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let input = [UInt8](copying: bytes)
        guard let first = input.first, let target = DoHTarget(authority: "dns.example", path: "/dns-query") else {
            return
        }
        var now = Instant(nanoseconds: 1_000_000_000)
        guard var connection = try? HTTPConnection(PlainStream(), target: target, at: now) else { return }
        var ledger = Ledger()
        for _ in 0..<8 { ledger.send(on: &connection, at: now) }
        let step = Int(first & 0x3F) * 16 + 1
        var offset = 1
        while offset < input.count {
            let piece = Array(input[offset..<min(offset + step, input.count)])
            offset += piece.count
            piece.read { connection.receive($0, at: now) }
            ledger.settle(&connection)
            if first & 0x40 != 0 { ledger.send(on: &connection, at: now) }
            if first & 0x80 != 0 {
                now = now + .milliseconds(300)
                connection.handleDeadlines(at: now)
                require(connection.nextDeadline.map { $0 > now } ?? true, "no deadline survives being handled")
            }
        }
        connection.endOfStream()
        ledger.settle(&connection)
        require(ledger.open.isEmpty, "every exchange ends")
        require(connection.isOver && connection.nextDeadline == nil, "the connection ends")
    }
}

/// Which exchanges are under way: each has to end once.
private struct Ledger {
    var open: Set<ExchangeID> = []
    private var last: UInt64 = 0
    private var isClosed = false

    mutating func send(on connection: inout HTTPConnection<PlainStream>, at now: Instant) {
        let query: [UInt8] = [1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0x61, 0, 0, 1, 0, 1]
        last += 1
        let id = ExchangeID(rawValue: last)
        let wasSent = query.read { (query) -> Bool in
            do {
                try connection.send(query, exchange: id, deadline: now + .seconds(5), at: now)
                return true
            } catch {
                return false
            }
        }
        if wasSent { open.insert(id) }
        settle(&connection)
    }

    mutating func settle(_ connection: inout HTTPConnection<PlainStream>) {
        repeat { takeEvents(of: &connection) } while drain(&connection)
    }

    private mutating func takeEvents(of connection: inout HTTPConnection<PlainStream>) {
        for event in connection.takeEvents() {
            require(!isClosed, "nothing comes behind the end")
            switch event {
            case .ready: break
            case .overdue(let id): require(open.contains(id), "only what is under way is overdue")
            case .answer(let answer):
                require(open.remove(answer.exchange) != nil, "an exchange ends once")
                require(12...65_535 ~= answer.message.count, "an answer has a header")
                require(answer.message.starts(with: [1, 2]) && answer.message[2] & 0x80 != 0, "an answer has its ID")
            case .failed(let id, _): require(open.remove(id) != nil, "an exchange ends once")
            case .closed:
                require(open.isEmpty, "every exchange has ended before the connection does")
                isClosed = true
            }
        }
        require(open.count == connection.exchangeCount, "both know what is under way")
    }

    /// Takes what there is for the socket. Queries may come to nothing when they are made into frames.
    private func drain(_ connection: inout HTTPConnection<PlainStream>) -> Bool {
        guard connection.outgoingCount > 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while buffer.edit({ connection.nextOutgoing(into: &$0) }) > 0 {}
        require(connection.outgoingCount == 0, "what there is can be taken")
        return true
    }
}
