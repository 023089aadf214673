internal import CLinux
internal import Glibc
internal import OpenMetrics
internal import Provider

/// The sockets that metrics are read from, by HTTP, and who is connected to them. A client gets one answer, and then its connection ends.
///
/// ```
///   accepted ──▶ reads the head ──▶ answer is sent ──▶ reads on until the client ends it ──▶ closed
///                      └─────────────────┴── ten seconds after it was accepted, at the latest ──┘
/// ```
///
/// There are few clients at a time. When one more comes, the one goes that has been there longest: who does nothing but hold a
/// connection keeps nobody out.
struct MetricsServer: ~Copyable {
    /// What an event came to.
    enum Outcome: Equatable {
        /// Nothing that concerns anybody else.
        case nothing
        /// A client has sent a request, and is owed an answer.
        case request(HTTPRequest, client: UInt64)
    }

    /// How many clients there are at most.
    static let maximumClients = 16
    /// How long a client may take for everything.
    static let timeLimit = Interval.seconds(10)
    /// How long nobody is accepted when there are no descriptors left.
    private static let pause = Interval.milliseconds(500)

    /// The tokens of its events.
    let tokens: Range<UInt64>
    private var nextToken: UInt64
    private var listeners: [MetricsListener] = []
    private var clients: [MetricsClient] = []
    private var pausedUntil: Instant?

    /// A server that listens nowhere.
    init(tokens: Range<UInt64>) {
        self.tokens = tokens
        nextToken = tokens.lowerBound
    }

    /// Where it listens.
    var addresses: [AddressAndPort] { listeners.map(\.address) }

    /// How many clients are connected.
    var clientCount: Int { clients.count }

    // MARK: Listening

    /// Listens at these addresses and no others. What stays is not touched. It succeeds whole or changes nothing.
    mutating func listen(at addresses: [AddressAndPort], _ loop: borrowing EventLoop) throws(StartFailure) {
        let leaving = listeners.filter { !addresses.contains($0.address) }
        let coming = addresses.filter { address in !listeners.contains { $0.address == address } }
        // One that goes and one that comes may overlap: both share the port for that moment.
        for listener in leaving { try? listener.descriptor.set(.sharedPort, to: 1) }
        var opened: [MetricsListener] = []
        do throws(StartFailure) {
            for address in coming {
                let sharesPort = leaving.contains { $0.address.port == address.port }
                opened.append(try open(address, sharesPort: sharesPort, loop))
            }
        } catch {
            for listener in opened { try? loop.unregister(listener.descriptor) }
            for listener in leaving { try? listener.descriptor.set(.sharedPort, to: 0) }
            throw error
        }
        for listener in leaving { try? loop.unregister(listener.descriptor) }
        listeners = listeners.filter { addresses.contains($0.address) } + opened
        for listener in opened { try? listener.descriptor.set(.sharedPort, to: 0) }
    }

    private mutating func open(
        _ address: AddressAndPort, sharesPort: Bool, _ loop: borrowing EventLoop
    ) throws(StartFailure) -> MetricsListener {
        let token = takeToken()
        return try StartFailure.wrapping("cannot listen on \(address) for metrics") { () throws(SystemCallError) in
            let opening = ListenerOpening(address: address, number: 0, threads: 0, sharesPort: sharesPort)
            let listener = MetricsListener(try opening.openStreams(), address: address, token: token)
            try loop.register(listener.descriptor, token: token, interest: .readable)
            return listener
        }
    }

    private mutating func takeToken() -> UInt64 {
        defer { nextToken = nextToken + 1 == tokens.upperBound ? tokens.lowerBound : nextToken + 1 }
        return nextToken
    }

    // MARK: Events

    /// Does what an event with one of its tokens asks for.
    mutating func handle(_ event: Event, _ loop: borrowing EventLoop) -> Outcome {
        if let listener = listeners.first(where: { $0.token == event.token }) {
            accept(listener, loop)
        } else if let client = clients.first(where: { $0.token == event.token }) {
            if let request = client.serve(event.readiness) { return .request(request, client: client.token) }
            settle(client, loop)
        }
        return .nothing
    }

    /// Gives a client its answer. One that is gone gets none.
    mutating func answer(_ client: UInt64, _ response: HTTPResponse, _ loop: borrowing EventLoop) {
        guard let client = clients.first(where: { $0.token == client }) else { return }
        client.answer(response)
        settle(client, loop)
    }

    private mutating func accept(_ listener: MetricsListener, _ loop: borrowing EventLoop) {
        let now = HostClock.now()
        for _ in 0..<Self.maximumClients {
            let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let number = clinux_accept4(listener.descriptor.rawValue, flags)
            guard number >= 0 else {
                switch errno {
                case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pauseAccepting(until: now + Self.pause, loop)
                // It gave up before it was accepted, or a signal came: the next one may not.
                case ECONNABORTED, EINTR: continue
                default: return
                }
            }
            if clients.count == Self.maximumClients { remove(clients[0], loop) }
            let client = MetricsClient(
                FileDescriptor(adopting: number), token: takeToken(), deadline: now + Self.timeLimit)
            guard (try? loop.register(client.descriptor, token: client.token, interest: .readable)) != nil else {
                continue
            }
            clients.append(client)
        }
    }

    private mutating func settle(_ client: MetricsClient, _ loop: borrowing EventLoop) {
        if client.isOver { return remove(client, loop) }
        // It is registered.
        try? loop.modify(client.descriptor, token: client.token, interest: client.interest)
    }

    private mutating func remove(_ client: MetricsClient, _ loop: borrowing EventLoop) {
        try? loop.unregister(client.descriptor)
        clients.removeAll { $0 === client }
    }

    // MARK: Deadlines

    /// When `handleDeadlines` has to be called; nil for never.
    var nextDeadline: Instant? {
        // Clients are in the order in which they came.
        let first = clients.first?.deadline
        guard let pausedUntil else { return first }
        return min(pausedUntil, first ?? pausedUntil)
    }

    /// Lets clients go whose time is over.
    mutating func handleDeadlines(at now: Instant, _ loop: borrowing EventLoop) {
        while let client = clients.first, client.deadline <= now { remove(client, loop) }
        if let end = pausedUntil, end <= now {
            pausedUntil = nil
            setAccepting(true, loop)
        }
    }

    private mutating func pauseAccepting(until end: Instant, _ loop: borrowing EventLoop) {
        pausedUntil = end
        setAccepting(false, loop)
    }

    private func setAccepting(_ accepts: Bool, _ loop: borrowing EventLoop) {
        for listener in listeners {
            try? loop.modify(listener.descriptor, token: listener.token, interest: accepts ? .readable : [])
        }
    }

    /// Closes everything.
    mutating func close(_ loop: borrowing EventLoop) {
        for client in clients { remove(client, loop) }
        for listener in listeners { try? loop.unregister(listener.descriptor) }
        listeners = []
        pausedUntil = nil
    }
}

/// A socket that clients connect to.
final class MetricsListener {
    let descriptor: FileDescriptor
    let address: AddressAndPort
    /// What its events carry.
    let token: UInt64

    init(_ descriptor: consuming FileDescriptor, address: AddressAndPort, token: UInt64) {
        self.descriptor = descriptor
        self.address = address
        self.token = token
    }
}
