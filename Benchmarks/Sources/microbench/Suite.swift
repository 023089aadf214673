import DNSProxy
import EncryptedDNS
import IPPacket
import Provider

/// All benchmarks, in the order in which they are shown.
struct Suite {
    private let options: Options
    private let effort: Effort
    private let instructionCounter: Int32?
    private(set) var measurements: [Measurement] = []

    /// A suite that measures what the options ask for.
    init(_ options: Options, instructionCounter: Int32?) {
        self.options = options
        self.instructionCounter = instructionCounter
        effort = options.thresholds != nil ? .allocationsOnly : options.isQuick ? .quick : .full
    }

    /// Measures everything.
    mutating func run() throws {
        try measureFormats()
        try measureSegmentation()
        try measureDNS()
        try measureCryptography()
        try measureDevice()
    }

    private mutating func measureFormats() throws {
        let (ipv4, ipv6) = (
            TestPackets.tcp(length: 1420),
            TestPackets.tcp(length: 1420, from: .v6(.loopback), to: .v6(.init(high: 1, low: 2)))
        )
        try add("parse/header-ipv4") { HeaderParsing(packet: ipv4) }
        try add("parse/header-ipv6") { HeaderParsing(packet: ipv6) }
        try add("parse/layout-ipv4") { LayoutParsing(packet: ipv4) }
        try add("parse/layout-ipv6") { LayoutParsing(packet: ipv6) }
        for length in [64, 1420, 64_000] {
            try add("checksum/\(length)") { Checksum(length: length) }
        }
        for count in [1, 24_000] {
            try add("allowed-ips/ipv4-\(count)") { AllowedIPsLookUp(peers: count, version: .v4) }
            try add("allowed-ips/ipv6-\(count)") { AllowedIPsLookUp(peers: count, version: .v6) }
        }
    }

    private mutating func measureSegmentation() throws {
        let shape = "\(TestSuperPacket.segmentCount)x\(TestSuperPacket.segmentLength)"
        try add("split/tcp-\(shape)") { Splitting(isTCP: true) }
        try add("split/udp-\(shape)") { Splitting(isTCP: false) }
        try add("join/tcp-\(shape)") { Joining(isTCP: true) }
        try add("join/udp-\(shape)") { Joining(isTCP: false) }
        try add("join/alone-\(shape)") { Joining(isTCP: true, alone: true) }
    }

    private mutating func measureDNS() throws {
        try add("dns/query-parse") { QueryParsing() }
        try add("dns/plain-query") { PlainQueryReading() }
        try add("dns/answer-check") { AnswerChecking() }
        try add("dns/answer") { AnswerWalking() }
        try add("dns/facts-view") { FactFinding(usesLDNS: false) }
        try add("dns/facts-ldns") { FactFinding(usesLDNS: true) }
        try add("dns/age") { Aging() }
        try add("dns/adapt") { CacheHit() }
        try add("dns/failure") { SmallAnswers(.failure) }
        try add("dns/negative") { SmallAnswers(.negative) }
        try add("dns/addresses") { SmallAnswers(.addresses) }
        try add("dns/cache-hit") { try CacheHitThroughProvider(by: .udp) }
        try add("dns/cache-hit-cookie") {
            try CacheHitThroughProvider(by: .udp, query: TestMessages.queryWithCookie)
        }
        try add("dns/cache-hit-tcp") { try CacheHitThroughProvider(by: .tcp) }
        try add("dns/blocked") { try CacheHitThroughProvider(by: .udp, isBlocked: true) }
        try add("dns/local-record") { try CacheHitThroughProvider(by: .udp, records: TestMessages.localRecords()) }
        if let target = DoHTarget(authority: "dns.example", path: "/dns-query") {
            try add("dns/miss-https") {
                try Miss(
                    HTTPConnection(PlainStream(), target: target, at: Instant(nanoseconds: 0)), ScriptedServer(.http2),
                    by: .https)
            }
        }
        try add("dns/miss-tls") {
            try Miss(PipelinedConnection(PlainStream(), at: Instant(nanoseconds: 0)), ScriptedServer(.length), by: .tls)
        }
        for length in [1, 64, 1460] {
            try add("dns/framing-\(length)") { Framing(pieceLength: length) }
        }
    }

    private mutating func measureCryptography() throws {
        for (count, length) in [(1, 64), (1, 1420), (44, 1420)] {
            try add("seal/\(count)x\(length)") { Sealing(try Trains(of: count, packetLength: length)) }
        }
        for (count, length) in [(1, 64), (1, 1420), (44, 1420)] {
            try add("open/\(count)x\(length)") { Opening(try Trains(of: count, packetLength: length)) }
        }
    }

    private mutating func measureDevice() throws {
        for length in [64, 1420] {
            try add("transmit/1x\(length)") { try Transmitting(packetLength: length) }
        }
        try add("transmit/tcp-44x1420") { try TransmittingSuperPackets(isTCP: true) }
        try add("transmit/udp-44x1420") { try TransmittingSuperPackets(isTCP: false) }
        try add("transmit/staged-1420") { try Staging(packetLength: 1420) }
        for (count, length) in [(1, 64), (1, 1420), (44, 1420)] {
            try add("receive/\(count)x\(length)") { try Receiving(trainsOf: count, packetLength: length) }
        }
        try add("timers/next-deadline-24000") { try NextDeadline(peers: 24_000) }
        try add("timers/moving-deadlines-24000") { try MovingDeadlines(peers: 24_000) }
    }

    private mutating func add<Subject: Benchmark & ~Copyable>(_ name: String, _ make: () throws -> Subject) throws {
        guard options.names.isEmpty || options.names.contains(where: { name.hasPrefix($0) }) else { return }
        measurements.append(
            measure(name, try make(), effort: effort, instructionCounter: instructionCounter))
    }
}
