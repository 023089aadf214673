import ByteAccess
import DNSMessage
import DNSProxy
import IPPacket
import Provider
import TestSupport
import Testing

@Suite("Any order of events")
struct DNSRandomOrderTests {
    /// Queries, right and wrong answers, failures, timeouts, leavers, sleeps, paths and reloads in random order.
    @Test(
        "In 10,000 random orders each query has exactly one answer, with its own ID, question and letters",
        arguments: 0..<20 as Range<UInt64>)
    func everything(part: UInt64) throws {
        for number in 0..<500 as Range<UInt64> {
            let seed = part * 500 + number
            var run = try RandomRun(seed: seed)
            for _ in 0..<40 { try run.step() }
            try run.end()
            #expect(run.broken.isEmpty, "seed \(seed)")
        }
    }
}

/// Clients and servers that do anything at any time, and who looks that no promise is broken.
private struct RandomRun: ~Copyable {
    var rig: Rig
    var broken: [String] = []
    private var generator: SeededGenerator
    private var asked: [UInt64: [UInt8]] = [:]
    private var left: Set<UInt64> = []
    private var isAsleep = false
    private let budget: Int

    init(seed: UInt64) throws {
        generator = SeededGenerator(seed: seed)
        budget = [0, 2_000, 6_000, 200_000][generator.below(4)]
        rig = try Rig(try Self.configuration(&generator, budget))
    }

    private static func configuration(_ generator: inout SeededGenerator, _ budget: Int) throws -> DNSProxyConfiguration
    {
        let count = 1 + generator.below(3)
        let upstreams = (0..<count).map { number in
            DNSUpstream(
                name: "s\(number)", transport: ExchangeTransport.allCases[generator.below(4)],
                isTrustedForAuthenticData: generator.below(2) == 0)
        }
        var configuration = DNSProxyConfiguration(upstreams: upstreams)
        configuration.cacheByteCount = budget
        configuration.mixesCase = generator.below(2) == 0
        configuration.maximumLookups = 1 + generator.below(8)
        configuration.maximumWaiting = 1 + generator.below(16)
        if generator.below(2) == 0 { configuration.rules = [try NameRule(parsing: "||b.example^")] }
        if generator.below(2) == 0 { configuration.dns64 = .prefix(try IPPrefix(parsing: "64:ff9b::/96")) }
        configuration.strategy = UpstreamStrategy.allCases[generator.below(3)]
        configuration.prefetches = generator.below(2) == 0
        configuration.staleLimit = .seconds(UInt64(generator.below(3)) * 20)
        return configuration
    }

    mutating func step() throws {
        switch generator.below(20) {
        case 0..<7: ask()
        case 7..<11: deliver()
        case 11..<13:
            let failures: [ExchangeFailure] = [
                .unreachable, .connectionClosed, .timedOut, .untrusted, .httpStatus(503), .noAddress, .overloaded,
            ]
            if !rig.open.isEmpty {
                rig.fail(failures[generator.below(failures.count)], at: generator.below(rig.open.count))
            }
        case 13..<16: rig.pass(.milliseconds(UInt64(generator.below(3000))))
        case 16:
            if let client = asked.keys.sorted().randomElement(using: &generator), rig.answers[client] == nil {
                rig.provider.clientLeft(ClientToken(rawValue: client))
                left.insert(client)
            }
        case 17:
            if isAsleep { rig.provider.wake(at: rig.now) } else { rig.provider.sleep() }
            isAsleep.toggle()
        case 18:
            let path = NetworkPath(interfaceIndex: UInt32(generator.below(3)))
            rig.provider.pathChanged(generator.below(4) == 0 ? .none : path, at: rig.now)
        default:
            try rig.provider.reload(try Self.configuration(&generator, budget), at: rig.now)
        }
        rig.carryOut()
        let status = rig.provider.status(at: rig.now)
        if status.cacheByteCount > budget || status.cacheUsedByteCount > status.cacheByteCount {
            broken.append("the cache has \(status.cacheByteCount) bytes")
        }
        let counters = status.counters
        let ends = status.results.total + counters.abandoned + counters.droppedAnswers + counters.droppedWithoutHeader
        if counters.queries != ends + UInt64(status.waiting) {
            broken.append("of \(counters.queries) queries \(ends) have ended and \(status.waiting) wait")
        }
    }

    private mutating func ask() {
        let names = ["a.example", "A.Example", "b.example", "x.b.example", "c.example", "a.b.c.d.example"]
        let flags = UInt16(0x0100) | UInt16([0, 0x10, 0x20][generator.below(3)])
        let types: [RecordType] = [.a, .aaaa, .txt, .https]
        let bytes = query(
            names[generator.below(names.count)], types[generator.below(types.count)],
            id: UInt16(truncatingIfNeeded: generator.next()), flags: flags,
            opt: generator.below(2) == 0 ? nil : opt(dnssecOK: generator.below(2) == 0))
        switch rig.ask(bytes, by: generator.below(2) == 0 ? .udp : .tcp) {
        case .answer(let answer): check(answer, bytes)
        case .pending(let client): asked[client] = bytes
        case .drop: broken.append("a query was dropped")
        }
    }

    private mutating func deliver() {
        guard !rig.open.isEmpty else { return }
        let index = generator.below(rig.open.count)
        let sent = rig.open[index].query
        var answer: [UInt8]
        switch generator.below(6) {
        case 0: answer = reply(to: sent, flags: 0x8183, authority: [soa("example", ttl: 30, minimum: 3)])
        case 1: answer = reply(to: sent, flags: 0x8180 | UInt16(generator.below(6)))
        case 2: answer = reply(to: sent, flags: 0x8380)
        case 3:
            answer = reply(
                to: sent, [record(.cname, ttl: 5, wire("x.b.example"))],
                authority: [soa("b.example", ttl: 5, minimum: 5)])
        default:
            answer = reply(
                to: sent,
                (0..<1 + generator.below(9)).map { number in
                    record(.a, ttl: UInt32(generator.below(20)), address(192, 0, 2, UInt8(number)))
                })
        }
        if generator.below(4) == 0 { answer[generator.below(answer.count)] ^= UInt8(1 << generator.below(8)) }
        rig.deliver(answer, at: index)
    }

    mutating func end() throws {
        if isAsleep { rig.provider.wake(at: rig.now) }
        rig.carryOut()
        if generator.below(3) == 0 { rig.provider.stop(.userInitiated, at: rig.now) } else { rig.pass(.seconds(6)) }
        rig.carryOut()
        for (client, bytes) in asked {
            let answers = rig.answers[client] ?? []
            if left.contains(client) ? !answers.isEmpty : answers.count != 1 {
                broken.append("client \(client) has \(answers.count) answers")
            }
            for answer in answers { check(answer, bytes) }
        }
        let status = rig.provider.status(at: rig.now)
        if status.waiting != 0 || status.lookups != 0 || rig.provider.nextDeadline != nil || !rig.open.isEmpty {
            broken.append("something is left")
        }
    }

    private mutating func check(_ bytes: [UInt8], _ query: [UInt8]) {
        guard let answer = try? Answer(bytes) else {
            broken.append("an answer that cannot be read")
            return
        }
        if answer.id != query.number(at: 0) { broken.append("another ID") }
        if answer.question != Array(query[12..<12 + answer.question.count]) || answer.question.isEmpty {
            broken.append("another question")
        }
        if answer.hasOPT != (query[11] == 1) { broken.append("an OPT record too many or too few") }
        if !answer.flags.contains([.response, .recursionAvailable]) { broken.append("no answer") }
    }
}
