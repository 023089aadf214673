internal import CLinux
internal import DNSProxy
internal import Glibc
internal import IPPacket
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
    /// How many clients are accepted before others have their turn.
    private static let acceptsPerTurn = 32
    /// How long no clients are accepted when there are no descriptors left.
    private static let pause = Interval.milliseconds(500)

    let shared: SharedProxy
    let log: Log
    var listeners: [Listener] = []
    var workers: [QueryWorker] = []
    /// True between `startWorkers` and `stopWorkers`.
    var workersRun = false
    private var nextNumber = 0
    private var datagrams = DatagramService()
    private var streams: StreamClients
    /// Until when no clients are accepted; nil while they are.
    private var pausedUntil: Instant?

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
        listeners = try openListeners(at: addresses, sharesPort: { _ in false })
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
        var counts = ClientCounts(datagrams: datagrams.counts, streams: streams.counts)
        for worker in workers { counts.datagrams.add(worker.counts) }
        return counts
    }

    /// How many bytes are kept for clients by TCP at present.
    var heldByteCount: Int { streams.heldByteCount }

    /// Starts watching all sockets. Once, with the loop that all other calls get.
    mutating func register(with loop: borrowing EventLoop) throws(SystemCallError) {
        for listener in listeners { try register(listener, with: loop) }
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
            if let listener = listener(number) { accept(listener, loop) }
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
    mutating func flush() { datagrams.flush() }

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
        listeners = []
        workers = []
        pausedUntil = nil
    }

    // MARK: Listeners

    /// Opens sockets at addresses, or throws and leaves none.
    mutating func openListeners(
        at addresses: [AddressAndPort], sharesPort: (AddressAndPort) -> Bool
    ) throws(ClientSideError) -> [Listener] {
        var opened: [Listener] = []
        for address in addresses {
            let opening = ListenerOpening(
                address: address, number: nextNumber, threads: workers.count + 1, sharesPort: sharesPort(address))
            opened.append(try opening.open())
            nextNumber += 1
        }
        return opened
    }

    /// Has the further threads, which must not run, watch their sockets of these listeners, and no others.
    func giveSockets(of listeners: [Listener]) throws(ClientSideError) {
        do throws(SystemCallError) {
            for (index, worker) in workers.enumerated() { try worker.watch(listeners.map { $0.datagrams[index + 1] }) }
        } catch {
            throw .system(error)
        }
    }

    /// Starts watching the sockets of a listener.
    func register(_ listener: Listener, with loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(
            listener.datagrams[0].descriptor, token: ClientSideToken.datagrams(listener.number).rawValue,
            interest: .readable)
        try loop.register(
            listener.streams, token: ClientSideToken.listener(listener.number).rawValue,
            interest: pausedUntil == nil ? .readable : [])
    }

    /// Stops watching the sockets of a listener, if they were.
    func unregister(_ listener: Listener, from loop: borrowing EventLoop) {
        try? loop.unregister(listener.datagrams[0].descriptor)
        try? loop.unregister(listener.streams)
    }

    private func listener(_ number: Int) -> Listener? { listeners.first { $0.number == number } }

    /// Accepts the clients that wait.
    private mutating func accept(_ listener: Listener, _ loop: borrowing EventLoop) {
        let decision = shared.withProxy { $0.handleNewFlow() }
        let now = HostClock.now()
        for _ in 0..<Self.acceptsPerTurn {
            let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let number = clinux_accept4(listener.streams.rawValue, flags)
            if number < 0 {
                switch errno {
                case EAGAIN: return
                case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                    // A client that does nothing has what a new one needs.
                    if streams.displaceIdlest(loop, where: { _ in true }) { continue }
                    log.error("no DNS clients are accepted for a moment: \(SystemCallError("accept4", errno: errno))")
                    return pause(at: now, loop)
                default:
                    // It gave up before it was accepted, or its network is gone: the next one may not.
                    continue
                }
            }
            let descriptor = FileDescriptor(adopting: number)
            guard decision == .handle, let address = descriptor.peerAddress() else {
                streams.countRefused()
                continue
            }
            streams.add(descriptor, from: address, at: now, loop)
        }
    }

    private mutating func pause(at now: Instant, _ loop: borrowing EventLoop) {
        pausedUntil = now + Self.pause
        setAccepting(false, loop)
    }

    private func setAccepting(_ accepts: Bool, _ loop: borrowing EventLoop) {
        for listener in listeners {
            try? loop.modify(
                listener.streams, token: ClientSideToken.listener(listener.number).rawValue,
                interest: accepts ? .readable : [])
        }
    }
}
