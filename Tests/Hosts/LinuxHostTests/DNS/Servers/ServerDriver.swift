import ByteAccess
import CLinux
import DNSProxy
import Glibc
import IPPacket
import Provider
import TestSupport

@testable import LinuxHost

/// Asks about names and keeps what comes of it.
final class RecordingClient: ExchangeClient {
    private(set) var queries: [ExchangeID: [UInt8]] = [:]
    private(set) var answers: [ExchangeID: [UInt8]] = [:]
    private(set) var failures: [ExchangeID: [ExchangeFailure]] = [:]
    /// How much came that was no answer.
    private(set) var strayCount = 0
    var names: [ExchangeID: String] = [:]

    /// How many exchanges have ended.
    var endedCount: Int { answers.count + failures.count }

    func writeQuery(of exchange: ExchangeID, entropy: QueryEntropy, into output: inout MutableRawSpan) -> Int? {
        guard let name = names[exchange] else { return nil }
        let query = wireQuery(name, id: entropy.id)
        queries[exchange] = query
        output.copy(query.span.octets, to: 0)
        return query.count
    }

    func received(
        _ answer: RawSpan, for exchange: ExchangeID, freshness: AnswerFreshness, at now: Instant
    ) -> ExchangeDisposition {
        let bytes = Array(answer)
        guard let query = queries[exchange], bytes.prefix(2) == query.prefix(2),
            bytes.dropFirst(12).starts(with: query.dropFirst(12))
        else {
            strayCount += 1
            return .keepWaiting
        }
        answers[exchange] = bytes
        return .finished
    }

    func failed(_ exchange: ExchangeID, _ failure: ExchangeFailure, at now: Instant) {
        failures[exchange, default: []].append(failure)
    }
}

/// A query for the A records of a name, octet by octet.
func wireQuery(_ name: String, id: UInt16) -> [UInt8] {
    var bytes: [UInt8] = [UInt8(id >> 8), UInt8(id & 0xFF), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    for label in name.split(separator: ".") {
        bytes.append(UInt8(label.utf8.count))
        bytes.append(contentsOf: label.utf8)
    }
    return bytes + [0, 0, 1, 0, 1]
}

/// The query's own bytes as an answer without records.
func wireAnswer(to query: [UInt8]) -> [UInt8] {
    var bytes = query
    bytes[2] |= 0x80
    bytes[3] = 0x80
    return bytes
}

/// The servers' side with an event loop, for a test to turn.
struct ServerDriver: ~Copyable {
    let client = RecordingClient()
    let ports = OwnPorts()
    var servers: ServerExchanges<RecordingClient>
    var loop: EventLoop
    private var events = EventBuffer(capacity: 16)
    private var lastID: UInt64 = 0

    init(
        _ upstreams: [DNSUpstreamConfiguration], bootstrap: [AddressAndPort] = [],
        log: Log = Log(level: .silent, name: "test")
    ) throws {
        let servers = try ServerExchanges(upstreams, bootstrap: bootstrap, client: client, ports: ports, log: log)
        let loop = try EventLoop()
        self.servers = servers
        self.loop = loop
    }

    /// Begins an exchange about a name.
    @discardableResult
    mutating func ask(
        _ name: String, by transport: ExchangeTransport, upstream: Int = 0, isFresh: Bool = false,
        for interval: Interval = patience
    ) -> ExchangeID {
        lastID += 1
        let id = ExchangeID(rawValue: lastID)
        client.names[id] = name
        let now = HostClock.now()
        servers.begin(
            Exchange(
                id: id, upstream: UpstreamID(index: upstream), transport: transport, needsFreshConnection: isFresh,
                deadline: now + interval), at: now, loop)
        servers.flush(loop)
        return id
    }

    /// Turns the loop until the condition holds; it is asked after each event, and every two milliseconds.
    mutating func run(_ awaited: String, until condition: (RecordingClient) throws -> Bool) throws {
        let end = HostClock.now() + patience
        while !(try condition(client)) {
            let now = HostClock.now()
            if now >= end { throw Impatience(awaited: awaited) }
            try loop.wait(until: min(servers.nextDeadline ?? end, now + .milliseconds(2)), into: &events)
            for index in 0..<events.count { _ = servers.handle(events[index], loop) }
            servers.handleDeadlines(at: HostClock.now(), loop)
            servers.flush(loop)
        }
    }
}

/// An upstream on this machine.
func upstream(_ transport: DNSUpstreamConfiguration.Transport, _ port: UInt16) -> DNSUpstreamConfiguration {
    upstream(transport, "127.0.0.1", port)
}

/// An upstream at an address, or with a name.
func upstream(
    _ transport: DNSUpstreamConfiguration.Transport, _ host: String, _ port: UInt16, addresses: [String] = []
) -> DNSUpstreamConfiguration {
    let reference = (try? IPAddress(parsing: host)).map { HostReference.address($0) } ?? .name(host)
    return DNSUpstreamConfiguration(
        name: "main", transport: transport, host: reference, port: port, addresses: addresses.map(address))
}
