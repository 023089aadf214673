internal import ByteAccess
internal import DNSProxy
internal import Provider

/// The DNS proxy's side to clients: sockets that listen, by UDP and by TCP, and the clients that are connected.
///
/// ```
///   proxy's own thread:   loop ── event ──▶ handle ──▶ shared.proxy ──▶ answers that there are at once
///                                                           │
///                         deliver, flush ◀── .answer ───────┘ (taken by the thread)
///
///   further threads:      own loop and sockets ──▶ shared.proxy ──▶ answers that there are at once
///                                                       └── wake-up of the proxy's own thread
/// ```
///
/// It is used by the proxy's own thread, which must not hold the proxy in any call. A call may put queries to the proxy, `deliver` too:
/// afterwards there may be actions again.
struct ClientSide: ~Copyable {
    /// The event-loop tokens that are its own.
    static let tokens = ClientSideToken.range
    let shared: SharedProxy
    let log: Log
    var listeners: [Listener] = []
    /// Where clients connect for TLS.
    var secureListeners: [SecureListener] = []
    var workers: [QueryWorker] = []
    /// True between `startWorkers` and `stopWorkers`.
    var workersRun = false
    /// The number of the next listener.
    var nextNumber = 0
    /// What reads and sends datagrams.
    var datagrams = DatagramService()
    /// The clients that are connected.
    var streams: StreamClients
    /// Until when no clients are accepted; nil while they are.
    var pausedUntil: Instant?
    private let passedByAddress = PassedByAddress()

    /// Opens sockets at all addresses. They are not watched yet; what comes meanwhile waits in them.
    ///
    /// - Parameters:
    ///   - clientIdle: How long a client by TCP may be idle.
    ///   - workers: How many threads read datagrams, the proxy's own counted.
    init(
        listen addresses: [AddressAndPort], clientIdle: Interval, workers: Int, shared: SharedProxy, log: Log
    ) throws(ClientSideError) {
        precondition(workers > 0, "nobody reads datagrams")
        self.shared = shared
        self.log = log
        streams = StreamClients(shared: shared, idle: clientIdle)
        do throws(SystemCallError) {
            for _ in 1..<workers { self.workers.append(try QueryWorker(shared: shared)) }
        } catch {
            throw .system(error)
        }
        listeners = try openListeners(at: addresses.withoutRepetitions, sharesPort: { _ in false })
        try giveSockets(of: listeners)
    }

    deinit {
        // A thread that runs keeps its sockets open.
        for worker in workers { worker.stop() }
    }

    /// Where it listens, in the order of the configuration.
    var addresses: [AddressAndPort] { listeners.map(\.address) }

    /// What became of clients.
    var counts: ClientCounts {
        var counts = ClientCounts(datagrams: datagrams.counts, streams: streams.counts, secure: streams.secureCounts)
        counts.secure.handshaking = streams.handshakeCount
        for worker in workers { counts.datagrams.add(worker.counts) }
        for socket in listeners.flatMap(\.datagrams) { counts.datagrams.overrun &+= socket.overrunCount }
        return counts
    }

    /// How many bytes are kept for clients by TCP at present.
    var heldByteCount: Int { streams.heldByteCount }

    /// Starts watching all sockets. Once, with the loop that all other calls get.
    mutating func register(with loop: borrowing EventLoop) throws(SystemCallError) {
        for listener in listeners { try register(listener, with: loop) }
        for listener in secureListeners { try register(listener, with: loop) }
    }

    /// Starts the further threads, if there are to be any.
    mutating func startWorkers() throws(SystemCallError) {
        for worker in workers { try worker.start() }
        workersRun = true
    }

    /// Ends the further threads. Their sockets stay, and keep what comes.
    mutating func stopWorkers() {
        for worker in workers { worker.stop() }
        workersRun = false
    }

    // MARK: Events

    /// Does what an event asks for. True when it was its own.
    mutating func handle(_ event: Event, _ loop: borrowing EventLoop) -> Bool {
        guard Self.tokens.contains(event.token) else { return false }
        switch ClientSideToken(rawValue: event.token) {
        case .datagrams(let number):
            if let listener = listener(number) { datagrams.serve(listener.datagrams[0], shared) }
        case .listener(let number):
            if let listener = listener(number) {
                accept(listener.streams, loop)
            } else if let listener = secureListener(number) {
                accept(listener.descriptor, by: listener.service, loop)
            }
        case .connection(let slot, let generation):
            if let client = streams.client(slot, generation) { streams.handle(event.readiness, client, loop) }
        case nil:
            break
        }
        return true
    }

    /// Gives a client the answer to its query. Who is gone gets none. Answers by UDP leave with `flush()`, together.
    ///
    /// - Returns: The client, when its query came through the tunnel: who reads the tunnel gives it its answer.
    mutating func deliver(
        _ answer: [UInt8], to token: ClientToken, _ loop: borrowing EventLoop
    ) -> DatagramClient? {
        if let query = StreamQuery(token) {
            streams.deliver(answer, to: query, at: HostClock.now(), loop)
            return nil
        }
        shared.lock()
        let taken = shared.datagramClients.take(token)
        shared.unlock()
        guard let client = taken else { return nil }
        guard case .socket(let number) = client.origin else { return client }
        if let listener = listener(number) {
            datagrams.add(answer, to: client, by: listener.datagrams[0])
        } else {
            datagrams.countLost()
        }
        return nil
    }

    /// Sends the answers by UDP that wait. To be called after the last `deliver` of a turn.
    mutating func flush() {
        datagrams.flush()
        streams.beginTurn()
    }

    // MARK: Deadlines

    /// When `handleDeadlines` has to be called; nil for never. It may be earlier than something is due, and is never a time that was
    /// handled.
    var nextDeadline: Instant? {
        guard let pausedUntil else { return streams.nextDeadline }
        return min(pausedUntil, streams.nextDeadline ?? pausedUntil)
    }

    /// Does what is due: closes clients that were idle for too long.
    mutating func handleDeadlines(at now: Instant, _ loop: borrowing EventLoop) {
        streams.handleDeadlines(at: now, loop)
        if let end = pausedUntil, end <= now {
            pausedUntil = nil
            setAccepting(true, loop)
        }
    }

    /// How long a client by TCP may be idle from now on.
    mutating func setClientIdle(_ idle: Interval) { streams.setIdle(idle) }

    /// Ends the threads, lets all clients go and closes all sockets. Answers that wait are sent before.
    mutating func close(_ loop: borrowing EventLoop) {
        flush()
        stopWorkers()
        streams.removeAll(loop)
        for listener in listeners { unregister(listener, from: loop) }
        for listener in secureListeners { unregister(listener, from: loop) }
        (listeners, secureListeners) = ([], [])
        workers = []
        pausedUntil = nil
    }

    /// The listener with a number; nil when it is gone.
    func listener(_ number: Int) -> Listener? { listeners.first { $0.number == number } }
}
