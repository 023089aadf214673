import ByteAccess
import DNSMessage
import DNSProxy
import IPPacket
import LDNSMessage
import Provider
import TestSupport
import Testing

/// A provider with a clock that stands still until it is told, and servers that say what a test has them say.
struct Rig: ~Copyable {
    var provider = DNSProxyProvider()
    var now = Instant(nanoseconds: 1_000_000_000_000)
    /// Exchanges that are open, in the order in which they began, with the query that was sent.
    var open: [(exchange: Exchange, query: [UInt8])] = []
    /// All exchanges so far.
    var begun: [Exchange] = []
    /// Answers to clients that came later, by the client's number.
    var answers: [UInt64: [[UInt8]]] = [:]
    var cancelled: [ExchangeID] = []
    var resets = 0
    var log: [LogMessage] = []
    private var lastClient: UInt64 = 0
    private var generator = SeededGenerator(seed: 7)
    private var buffer = [UInt8](repeating: 0xEE, count: DNSProxyProvider.answerCapacity)

    /// A provider that runs, with one server by UDP unless the configuration says otherwise.
    init(_ configuration: DNSProxyConfiguration = .plain) throws {
        try provider.start(configuration, at: now)
        carryOut()
    }

    /// What became of a query.
    enum Outcome: Equatable {
        case answer([UInt8])
        case pending(UInt64)
        case drop(DropReason)

        /// The answer that was given at once.
        var answer: Answer {
            get throws {
                guard case .answer(let bytes) = self else { throw Absent() }
                return try Answer(bytes)
            }
        }

        /// The number of the client that waits.
        var client: UInt64 {
            get throws {
                guard case .pending(let client) = self else { throw Absent() }
                return client
            }
        }
    }

    /// Puts a query to the provider.
    @discardableResult
    mutating func ask(_ query: [UInt8], by transport: ClientTransport = .udp) -> Outcome {
        lastClient += 1
        var buffer: [UInt8] = []
        swap(&buffer, &self.buffer)
        defer { swap(&buffer, &self.buffer) }
        let outcome = Self.ask(&provider, query, lastClient, transport, now, &buffer)
        carryOut()
        return outcome
    }

    private static func ask(
        _ provider: inout DNSProxyProvider, _ query: [UInt8], _ client: UInt64, _ transport: ClientTransport,
        _ now: Instant, _ buffer: inout [UInt8]
    ) -> Outcome {
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        let decision = provider.handle(
            query: query.span.octets, from: ClientToken(rawValue: client), by: transport, at: now, into: &output)
        return switch decision {
        case .answer(let count): .answer(Array(output.bytes.extracting(..<count)))
        case .pending: .pending(client)
        case .drop(let reason): .drop(reason)
        }
    }

    /// Puts a query to the provider that has to go to a server; returns what the server is sent.
    mutating func forward(_ query: [UInt8], by transport: ClientTransport = .udp) throws -> (
        client: UInt64, sent: [UInt8]
    ) {
        let client = try ask(query, by: transport).client
        return (client, try #require(open.last?.query))
    }

    /// Puts a query, lets the latest exchange be answered with these records, and returns the client's answer.
    @discardableResult
    mutating func resolve(
        _ query: [UInt8], by transport: ClientTransport = .udp, flags: UInt16 = 0x8180, _ answers: [[UInt8]] = [],
        authority: [[UInt8]] = [], additional: [[UInt8]] = []
    ) throws -> Answer {
        let (client, sent) = try forward(query, by: transport)
        deliver(reply(to: sent, flags: flags, answers, authority: authority, additional: additional))
        return try answer(of: client)
    }

    /// Lets something come for an exchange: the latest unless said otherwise. ldns reads it for policy.
    @discardableResult
    mutating func deliver(
        _ answer: [UInt8], at index: Int? = nil, freshness: AnswerFreshness = AnswerFreshness()
    ) -> ExchangeDisposition? {
        guard let index = index ?? open.indices.last, open.indices.contains(index) else { return nil }
        let id = open[index].exchange.id
        let disposition = provider.received(
            answer.span.octets, for: id, freshness: freshness, reader: LDNSAnswerReader(), at: now)
        if disposition == .finished { open.removeAll { $0.exchange.id == id } }
        carryOut()
        return disposition
    }

    /// Lets an exchange come to nothing: the latest unless said otherwise.
    mutating func fail(_ failure: ExchangeFailure, at index: Int? = nil) {
        guard let index = index ?? open.indices.last, open.indices.contains(index) else { return }
        let id = open.remove(at: index).exchange.id
        provider.failed(id, failure, at: now)
        carryOut()
    }

    /// The one answer that a client got later.
    func answer(of client: UInt64) throws -> Answer {
        let all = answers[client] ?? []
        guard all.count == 1 else { throw Absent() }
        return try Answer(all[0])
    }

    /// Lets time pass, stopping at each deadline on the way.
    mutating func pass(_ interval: Interval) {
        let end = now + interval
        while let deadline = provider.nextDeadline, deadline <= end {
            if deadline > now { now = deadline }
            provider.handleDeadlines(at: now)
            carryOut()
            if let next = provider.nextDeadline, next <= now {
                Issue.record("a deadline survived being handled")
                return
            }
        }
        now = end
    }

    /// Does what the provider asks for.
    mutating func carryOut() {
        for action in provider.takeActions() {
            switch action {
            case .exchange(let exchange):
                begun.append(exchange)
                let own = provider.status(at: now).upstreams[exchange.upstream.index].transport
                if exchange.transport != own, own != .udp || exchange.transport != .tcp {
                    Issue.record("a server is asked by \(exchange.transport) instead of \(own)")
                }
                let letters: InlineArray<4, UInt64> = [
                    generator.next(), generator.next(), generator.next(), generator.next(),
                ]
                let entropy = QueryEntropy(id: UInt16(truncatingIfNeeded: generator.next()), letters: letters)
                var query = [UInt8](repeating: 0xEE, count: 600)
                var count = 0
                var span = query.mutableSpan
                var output = span.mutableOctets
                count = provider.writeQuery(of: exchange.id, entropy: entropy, into: &output) ?? -1
                // An exchange may have been given up within the same call.
                if count >= 0 { open.append((exchange, Array(output.bytes.extracting(..<count)))) }
            case .cancel(let id):
                cancelled.append(id)
                open.removeAll { $0.exchange.id == id }
            case .answer(let client, let bytes): answers[client.rawValue, default: []].append(bytes)
            case .resetConnections: resets += 1
            case .log(_, let message): log.append(message)
            }
        }
    }
}

extension DNSProxyConfiguration {
    /// One server by UDP.
    static var plain: DNSProxyConfiguration { servers(.udp) }

    /// Servers by these transports, called s0, s1 and so on.
    static func servers(_ transports: ExchangeTransport..., trusted: Bool = false) -> DNSProxyConfiguration {
        DNSProxyConfiguration(
            upstreams: transports.enumerated().map {
                DNSUpstream(name: "s\($0.offset)", transport: $0.element, isTrustedForAuthenticData: trusted)
            })
    }

    /// This with rules.
    func with(rules: String...) throws -> DNSProxyConfiguration {
        var configuration = self
        configuration.rules = try rules.map { try NameRule(parsing: $0) }
        return configuration
    }

    /// This with a change.
    func with(_ change: (inout DNSProxyConfiguration) -> Void) -> DNSProxyConfiguration {
        var configuration = self
        change(&configuration)
        return configuration
    }
}

/// The data of an A record.
func address(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> [UInt8] { [a, b, c, d] }
