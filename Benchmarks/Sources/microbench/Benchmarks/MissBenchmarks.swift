import ByteAccess
import CMeasurement
import DNSProxy
import EncryptedDNS
import LDNSMessage
import Provider

/// A proxy that has nothing in its cache: each query goes through a connection to a server, whose answer comes back by it. All in
/// memory, and without encryption, whose work is OpenSSL's.
struct Miss<Connection: DNSConnection & ~Copyable>: Benchmark, ~Copyable {
    let operations = 512
    private var provider = DNSProxyProvider()
    private var connection: Connection
    private var server: ScriptedServer
    private var query: [UInt8]
    private var output = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)
    private var sent = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)
    private var count: UInt64 = 0

    /// - Parameter connection: One that is open.
    init(
        _ connection: consuming Connection, _ server: ScriptedServer, by transport: ExchangeTransport
    ) throws {
        var configuration = DNSProxyConfiguration(upstreams: [DNSUpstream(name: "main", transport: transport)])
        configuration.cacheByteCount = 262_144
        try provider.start(configuration, at: Instant(nanoseconds: 0))
        self.connection = connection
        self.server = server
        query = MissMessages.query
        self.connection.receive(server.greeting.span.octets, at: Instant(nanoseconds: 0))
        while self.connection.nextEvent() != nil {}
    }

    mutating func run() {
        for _ in 0..<operations { askOnce() }
    }

    private mutating func askOnce() {
        count += 1
        let now = Instant(nanoseconds: count * 1_000)
        MissMessages.number(&query, count)
        guard handle(at: now) == .pending else { preconditionFailure("an answer that nobody gave") }
        for action in provider.takeActions() {
            guard case .exchange(let exchange) = action else { continue }
            send(exchange, at: now)
        }
        let length = takeOutgoing()
        var request = takeBytes(of: &sent)
        server.answer(request.span.octets.extracting(..<length), to: query)
        swap(&request, &sent)
        let response = server.response
        connection.receive(response.span.octets, at: now)
        while let event = connection.nextEvent() {
            guard case .answer(let answer) = event else { preconditionFailure("no answer: \(event)") }
            _ = provider.received(
                answer.message.span.octets, for: answer.exchange, freshness: answer.freshness,
                reader: LDNSAnswerReader(), at: now)
        }
        var isAnswered = false
        for action in provider.takeActions() {
            guard case .answer(_, let bytes) = action else { continue }
            measurement_consume(UInt64(bytes.count))
            isAnswered = true
        }
        precondition(isAnswered, "a client without an answer")
    }

    private mutating func handle(at now: Instant) -> Decision {
        var bytes = takeBytes(of: &output)
        defer { swap(&bytes, &output) }
        var span = bytes.mutableSpan
        var octets = span.mutableOctets
        let query = query
        return provider.handle(
            query: query.span.octets, from: ClientToken(rawValue: count), by: .udp, at: now, into: &octets)
    }

    private mutating func send(_ exchange: Exchange, at now: Instant) {
        var bytes = takeBytes(of: &sent)
        defer { swap(&bytes, &sent) }
        let length: Int?
        do {
            var span = bytes.mutableSpan
            var octets = span.mutableOctets
            let entropy = QueryEntropy(id: 0, letters: InlineArray(repeating: 0))
            length = provider.writeQuery(of: exchange.id, entropy: entropy, into: &octets)
        }
        guard let length else { preconditionFailure("an exchange without a query") }
        do throws(SendError) {
            try connection.send(
                bytes.span.octets.extracting(..<length), exchange: exchange.id, deadline: exchange.deadline, at: now)
        } catch {
            preconditionFailure("a query that is not taken: \(error)")
        }
    }

    private mutating func takeOutgoing() -> Int {
        var bytes = takeBytes(of: &sent)
        defer { swap(&bytes, &sent) }
        var span = bytes.mutableSpan
        var octets = span.mutableOctets
        return connection.nextOutgoing(into: &octets)
    }
}

/// What a server sends: one message, of which only what differs is written anew.
struct ScriptedServer {
    /// How messages are put on the connection.
    enum Framing {
        /// Each with its length in front.
        case length
        /// Each in a stream of HTTP/2, with a header in front.
        case http2
    }

    /// What it says first.
    let greeting: [UInt8]
    private(set) var response: [UInt8]
    private let framing: Framing
    private let start: Int
    private var lastStream: UInt32 = 0xFFFF_FFFF

    init(_ framing: Framing) {
        self.framing = framing
        let question = MissMessages.query[12..<MissMessages.questionEnd]
        let answer: [UInt8] = [0xC0, 0x0C, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1]
        let message = [0, 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0] + question + answer
        switch framing {
        case .length:
            greeting = []
            response = [UInt8(message.count >> 8), UInt8(message.count & 0xFF)]
        case .http2:
            // SETTINGS that allow 128 streams, and a WINDOW_UPDATE of all that there can be.
            greeting = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 128, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7F, 0xFF, 0, 0]
            // HEADERS: ":status: 200" by its index, and "content-type", whose name has one, in full (RFC 7541 §6.1 and §6.2.2).
            response = [0, 0, 27, 1, 4, 0, 0, 0, 0, 0x88, 0x0F, 0x10, 23] + "application/dns-message".utf8
            // DATA that ends the stream.
            response += [0, 0, UInt8(message.count), 0, 1, 0, 0, 0, 0]
        }
        start = response.count
        response += message
    }

    /// Makes the answer to a client's query, which has come as `request`.
    mutating func answer(_ request: RawSpan, to query: [UInt8]) {
        switch framing {
        case .length: (response[start], response[start + 1]) = (request.uint8(at: 2), request.uint8(at: 3))
        case .http2:
            lastStream &+= 2
            for index in 0..<4 {
                let octet = UInt8(truncatingIfNeeded: lastStream >> UInt32(24 - 8 * index))
                (response[5 + index], response[start - 4 + index]) = (octet, octet)
            }
        }
        for offset in 12..<MissMessages.questionEnd { response[start + offset] = query[offset] }
    }
}

/// Queries that differ in a number.
enum MissMessages {
    /// A query for the address of sixteen digits below example.com, with EDNS.
    static let query: [UInt8] =
        [0xAB, 0xCD, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 16] + [UInt8](repeating: 0x30, count: 16)
        + [7, 0x65, 0x78, 0x61, 0x6D, 0x70, 0x6C, 0x65, 3, 0x63, 0x6F, 0x6D, 0, 0, 1, 0, 1]
        + [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
    /// How many of its bytes are the header and the question.
    static let questionEnd = query.count - 11

    /// Writes a number into a query's name.
    static func number(_ query: inout [UInt8], _ number: UInt64) {
        for digit in 0..<16 {
            let value = UInt8(truncatingIfNeeded: number >> UInt64(4 * digit)) & 15
            query[28 - digit] = value < 10 ? 0x30 + value : 0x57 + value
        }
    }
}
