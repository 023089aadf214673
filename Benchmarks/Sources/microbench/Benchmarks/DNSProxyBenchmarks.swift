import ByteAccess
import CMeasurement
import DNSMessage
import DNSProxy
import Provider

/// A proxy that has one answer in its cache, and is asked for it.
struct CacheHitThroughProvider: Benchmark, ~Copyable {
    let operations = 2048
    private let query: [UInt8]
    private let transport: ClientTransport
    private var provider = DNSProxyProvider()
    private var output = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)

    /// - Parameters:
    ///   - isBlocked: True to ask for a name that a rule blocks, instead of one with an answer.
    ///   - query: What is asked.
    ///   - records: Local records that the answer is made of.
    init(
        by transport: ClientTransport, isBlocked: Bool = false, query: [UInt8] = TestMessages.query,
        records: [ResourceRecord] = []
    ) throws {
        self.transport = transport
        self.query = query
        var configuration = DNSProxyConfiguration(upstreams: [DNSUpstream(name: "main", transport: .tls)])
        configuration.rules = [try NameRule(parsing: isBlocked ? "||example.com^" : "||ads.example^")]
        configuration.records = records
        try provider.start(configuration, at: Instant(nanoseconds: 0))
        if !isBlocked, records.isEmpty { answerOnce() }
    }

    /// Lets the one exchange be answered that the first query begins.
    private mutating func answerOnce() {
        ask(at: Instant(nanoseconds: 1))
        var sent = [UInt8](repeating: 0, count: 512)
        for case .exchange(let exchange) in provider.takeActions() {
            var span = sent.mutableSpan
            var octets = span.mutableOctets
            let entropy = QueryEntropy(id: 0xABCD, letters: InlineArray(repeating: 0))
            _ = provider.writeQuery(of: exchange.id, entropy: entropy, into: &octets)
            let answer = TestMessages.answer
            _ = provider.received(
                answer.span.octets, for: exchange.id, reader: ViewAnswerReader(), at: Instant(nanoseconds: 2))
        }
        _ = provider.takeActions()
    }

    private mutating func ask(at now: Instant) {
        var bytes = takeBytes(of: &output)
        Self.ask(&provider, query, transport, now, &bytes, isCounted: false)
        swap(&bytes, &output)
    }

    private static func ask(
        _ provider: inout DNSProxyProvider, _ query: [UInt8], _ transport: ClientTransport, _ now: Instant,
        _ buffer: inout [UInt8], isCounted: Bool, operations: Int = 1
    ) {
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        for _ in 0..<operations {
            let decision = provider.handle(
                query: query.span.octets, from: ClientToken(rawValue: 1), by: transport, at: now, into: &octets)
            guard isCounted else { continue }
            guard case .answer(let count) = decision else { preconditionFailure("no answer in the cache") }
            measurement_consume(UInt64(count))
        }
    }

    mutating func run() {
        var bytes = takeBytes(of: &output)
        Self.ask(
            &provider, query, transport, Instant(nanoseconds: 3_000_000_000), &bytes, isCounted: true,
            operations: operations)
        swap(&bytes, &output)
    }
}
