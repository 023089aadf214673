internal import DNSMessage
internal import DNSProxy
internal import Provider
internal import WireGuard

/// The DNS proxy on Linux: the thread that it runs in, with an event loop of its own.
///
/// ```
///   listening sockets ─▶ ┌─────────────┐ queries  ┌────────────────┐ exchanges  ┌─────────────┐
///   further threads ───▶ │ client side │ ───────▶ │ proxy (core)   │ ─────────▶ │ server side │ ──▶ UDP, TCP, TLS, HTTPS
///   TUN device ────────▶ └─────────────┘ ◀─────── └────────────────┘ ◀───────── └─────────────┘
///                                        answers                      answers
/// ```
///
/// Sharing it is sound: the loop belongs to its thread while that runs; the owner's thread reaches it by `onThread` only, while the
/// other one stands still.
@safe final class DNSService: @unchecked Sendable {
    let shared: SharedProxy
    private let inbox: QueryInbox
    /// How many threads take queries.
    let workers: Int

    /// The loop while no thread runs it.
    private var idleLoop: ProxyLoop?
    private let orders: ThreadOrders
    private var order: ((inout ProxyLoop) -> Void)?
    private var thread: OwnThread?

    /// Opens what a configuration asks for. Nothing is answered before `start`.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    init(
        _ configuration: DNSConfiguration, _ rules: RuleConfiguration?, inbox: QueryInbox, news: QueryNews, log: Log
    ) throws(StartFailure) {
        shared = try StartFailure.wrappingWatch { () throws(SystemCallError) in try SharedProxy(news: news) }
        orders = try StartFailure.wrappingWatch { () throws(SystemCallError) in try ThreadOrders() }
        workers = configuration.workers
        self.inbox = inbox
        idleLoop = try ProxyLoop(configuration, rules, shared: shared, inbox: inbox, log: log)
    }

    /// Starts the threads.
    func start() throws(SystemCallError) {
        try idleLoop?.watch(orders.wakeUp)
        thread = try OwnThread { self.run() }
    }

    /// Answers what comes out of a TUN device too; with nil no more.
    func serve(_ tun: consuming TUNDevice?) {
        var answers: TunnelAnswers?
        switch consume tun {
        case .some(let tun): answers = TunnelAnswers(tun)
        case .none: break
        }
        onThread { $0.exchange(&answers) }
    }

    /// Makes the proxy what a configuration says. It succeeds whole or changes nothing.
    func reload(_ new: DNSConfiguration, _ rules: RuleConfiguration?) throws(StartFailure) {
        var result: Result<Void, StartFailure> = .success(())
        onThread { loop in
            do throws(StartFailure) { try loop.change(to: new, rules) } catch { result = .failure(error) }
        }
        try result.get()
    }

    /// The way to the network is this one now.
    func pathChanged(_ path: NetworkPath) {
        onThread { $0.shared.withProxy { $0.pathChanged(path, at: HostClock.now()) } }
    }

    /// The same addresses may be reached by other ways now.
    func routesChanged() {
        onThread { $0.shared.withProxy { $0.networkChanged(at: HostClock.now()) } }
    }

    /// The machine slept and is awake again.
    func machineSlept() {
        onThread {
            $0.shared.withProxy { proxy in
                proxy.sleep()
                proxy.wake(at: HostClock.now())
            }
        }
    }

    /// How the proxy is doing.
    func status() -> DNSServiceStatus {
        var status: DNSServiceStatus?
        onThread { loop in
            status = DNSServiceStatus(
                proxy: shared.withProxy { $0.status(at: HostClock.now()) }, clients: loop.clients.counts,
                servers: loop.servers.status, lostInTunnel: inbox.droppedCount)
        }
        guard let status else { preconditionFailure("an order that was not carried out") }
        return status
    }

    /// Queries of the log from a number on, `limit` at most. With `awaitsMore`, the next one is told when there is none yet.
    func queries(from number: UInt64?, limit: Int, awaitsMore: Bool) -> QueryLogExcerpt {
        shared.lock()
        defer { shared.unlock() }
        return shared.queries(from: number, limit: limit, awaitsMore: awaitsMore)
    }

    /// Forgets what is known of a name and of all below it, or with nil all that is known.
    ///
    /// - Returns: How many answers are gone.
    func flushCache(of name: DomainName?) -> Int {
        shared.withProxy { $0.flushCache(of: name) }
    }

    /// Ends the threads. Who waits for an answer is told that there is nobody.
    func stop() {
        inbox.isOpen = false
        guard isRunning else { return }
        onThread { $0.end() }
        if let thread = thread.take() { thread.join() }
    }

    // MARK: The thread

    private func run() {
        guard var loop = idleLoop.take() else { preconditionFailure("a thread without a loop") }
        loop.run(orders.wakeUp) { loop in
            order?(&loop)
            // What was ordered may have given the proxy something to do.
            loop.act()
            orders.carriedOut()
        }
        idleLoop = consume loop
    }

    /// Has the proxy's thread run `body` between two turns, and waits for it.
    private func onThread(_ body: (inout ProxyLoop) -> Void) {
        guard isRunning else {
            guard var loop = idleLoop.take() else { preconditionFailure("a loop that nobody has") }
            body(&loop)
            idleLoop = consume loop
            return
        }
        withoutActuallyEscaping(body) { body in
            order = body
            orders.give()
            order = nil
        }
    }

    private var isRunning: Bool {
        switch thread {
        case .some: true
        case .none: false
        }
    }
}

extension StartFailure {
    /// Has a failure to set up what a loop waits for told as one to start.
    static func wrappingWatch<Result: ~Copyable>(
        _ body: () throws(SystemCallError) -> Result
    ) throws(StartFailure) -> Result {
        try wrapping("cannot watch for DNS queries", body)
    }
}
