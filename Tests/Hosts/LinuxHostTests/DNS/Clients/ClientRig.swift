import ByteAccess
import DNSMessage
import DNSProxy
import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

/// The side to clients with its loop, and a proxy whose servers say what a test has them say. All of it runs on the test's thread,
/// when the test says so.
struct ClientRig: ~Copyable {
    /// Where it listens unless a test says otherwise.
    static let address = "127.0.0.1:53"

    let shared: SharedProxy
    var side: ClientSide
    var loop: EventLoop
    /// What servers were asked and have not answered: in the order in which it was asked.
    var asked: [(exchange: ExchangeID, query: [UInt8])] = []
    /// Answers that are for the tunnel.
    var tunnelled: [DatagramClient] = []
    private var events = EventBuffer(capacity: 64)
    private static let wakeUpToken: UInt64 = 7

    /// Listens, with a proxy that runs.
    init(
        _ addresses: [String] = [Self.address], idle: Interval = .seconds(20), workers: Int = 1, rules: [String] = []
    ) throws {
        let shared = try SharedProxy()
        var configuration = DNSProxyConfiguration(upstreams: [DNSUpstream(name: "s0", transport: .https)])
        configuration.rules = try rules.map { try NameRule(parsing: $0) }
        configuration.timeout = .seconds(60)
        configuration.blocksRebinding = false
        let started = shared.withProxy { proxy in
            Result { try proxy.start(configuration, at: HostClock.now()) }
        }
        try started.get()
        var side = try ClientSide(
            listen: addresses.map { try #require(AddressAndPort(parsing: $0)) }, clientIdle: idle, workers: workers,
            shared: shared, log: Log(level: .silent, name: "test"))
        let loop = try EventLoop()
        try loop.register(shared.wakeUp.descriptor, token: Self.wakeUpToken, interest: .readable)
        try side.register(with: loop)
        self.shared = shared
        self.side = side
        self.loop = loop
    }

    /// Serves what comes until something is so.
    mutating func serve(until awaited: String, _ isSo: (inout ClientRig) throws -> Bool) throws {
        let deadline = HostClock.now() + patience
        while !(try isSo(&self)) {
            if HostClock.now() >= deadline { throw Impatience(awaited: awaited) }
            try turn(until: HostClock.now() + .milliseconds(5))
        }
    }

    /// Serves what comes until there is nothing to do for a moment: for what must not happen. A loop that spins has no such moment.
    mutating func serveAll() throws {
        let deadline = HostClock.now() + patience
        while try turn(until: HostClock.now() + .milliseconds(20)) > 0 {
            if HostClock.now() >= deadline { throw Impatience(awaited: "a loop with nothing to do") }
        }
    }

    /// Waits for events once and does what they ask for; returns how many there were.
    @discardableResult
    mutating func turn(until deadline: Instant) throws -> Int {
        try loop.wait(until: deadline, into: &events)
        for index in 0..<events.count {
            let event = events[index]
            if event.token == Self.wakeUpToken {
                _ = shared.wakeUp.clear()
            } else if !side.handle(event, loop) {
                Issue.record("an event of nobody")
            }
        }
        try carryOut()
        return events.count
    }

    /// Answers the first server's question, with records that have this data.
    mutating func answerFirst(type: UInt16 = 1, _ data: [[UInt8]] = [[192, 0, 2, 1]]) throws {
        try answer(try #require(asked.indices.first), type: type, data)
    }

    /// Answers what a server was asked.
    mutating func answer(_ index: Int, type: UInt16 = 1, _ data: [[UInt8]] = [[192, 0, 2, 1]]) throws {
        let (exchange, query) = asked.remove(at: index)
        let reply = ClientWire.reply(to: query, type: type, data)
        let disposition = shared.withProxy { proxy in
            proxy.received(reply.span.octets, for: exchange, reader: ViewAnswerReader(), at: HostClock.now())
        }
        #expect(disposition == .finished)
        try carryOut()
    }

    /// How many clients' queries the proxy has that wait.
    var waiting: Int { shared.withProxy { $0.status(at: HostClock.now()).waiting } }

    /// When something of the side to clients is due.
    var nextDeadline: Instant? { side.nextDeadline }

    /// Has the side to clients do what is due at a time.
    mutating func handleDeadlines(at now: Instant) { side.handleDeadlines(at: now, loop) }

    /// Gives a client an answer, whatever the proxy knows of it. Returns the client when it is the tunnel's.
    mutating func deliver(_ answer: [UInt8], to token: ClientToken) -> DatagramClient? {
        side.deliver(answer, to: token, loop)
    }

    /// Does what the proxy wants done.
    mutating func carryOut() throws {
        while true {
            let actions = shared.withProxy { $0.takeActions() }
            if actions.isEmpty { break }
            for action in actions {
                switch action {
                case .exchange(let exchange): ask(exchange.id)
                case .answer(let token, let bytes):
                    if let client = side.deliver(bytes, to: token, loop) { tunnelled.append(client) }
                case .cancel(let exchange): asked.removeAll { $0.exchange == exchange }
                case .resetConnections, .log: break
                }
            }
        }
        side.flush()
    }

    private mutating func ask(_ exchange: ExchangeID) {
        var query = [UInt8](repeating: 0, count: 600)
        let count = shared.withProxy { proxy in
            var span = query.mutableSpan
            var octets = span.mutableOctets
            return proxy.writeQuery(of: exchange, entropy: QueryEntropy(id: 9, letters: [1, 2, 3, 4]), into: &octets)
        }
        if let count { asked.append((exchange, Array(query[..<count]))) }
    }
}
