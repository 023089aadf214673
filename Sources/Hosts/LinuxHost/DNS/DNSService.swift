internal import ByteAccess
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
/// Sharing it is sound: the loop and both sides belong to its thread; the owner's thread reaches them by `onThread` only, while this
/// one stands still.
@safe final class DNSService: @unchecked Sendable {
    private enum Token {
        static let order: UInt64 = 0
        static let proxy: UInt64 = 1
        static let inbox: UInt64 = 2
    }

    let shared: SharedProxy
    private let inbox: QueryInbox
    let log: Log
    /// The hosts files, for the thread.
    var hostFiles: HostFiles
    /// How many threads take queries.
    let workers: Int
    private var configuration: DNSConfiguration

    private var loop: EventLoop
    private var clients: ClientSide
    private var servers: ServerSide
    private var tunnel: TunnelAnswers?
    private var output = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)

    private let orders: ThreadOrders
    private var order: (() -> Void)?
    private var thread: OwnThread?
    private var isEnding = false

    /// Opens what a configuration asks for. Nothing is answered before `start`.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    init(
        _ configuration: DNSConfiguration, _ rules: RuleConfiguration?, inbox: QueryInbox, news: QueryNews, log: Log
    ) throws(StartFailure) {
        let shared = try Self.watching { () throws(SystemCallError) in try SharedProxy(news: news) }
        let orders = try Self.watching { () throws(SystemCallError) in try ThreadOrders() }
        let loop = try Self.watching { () throws(SystemCallError) in try EventLoop() }
        let servers = try Self.openServers(of: configuration, shared, inbox, log)
        let hostFiles = try Self.readHosts(configuration)
        let clients: ClientSide
        do throws(ClientSideError) {
            clients = try ClientSide.open(configuration, shared: shared, log: log)
        } catch { throw StartFailure("\(error)") }
        do throws(DNSProxyError) {
            try shared.proxy.start(DNSProxyConfiguration(configuration, rules), at: HostClock.now())
        } catch { throw StartFailure("dns: \(error)") }
        shared.setQueryLog(configuration.queryLog)
        self.shared = shared
        self.inbox = inbox
        self.log = log
        workers = configuration.workers
        self.configuration = configuration
        self.loop = loop
        self.orders = orders
        self.clients = clients
        self.servers = servers
        self.hostFiles = hostFiles
        adoptHosts(hostFiles)
    }

    private static func openServers(
        of configuration: DNSConfiguration, _ shared: SharedProxy, _ inbox: QueryInbox, _ log: Log
    ) throws(StartFailure) -> ServerSide {
        do throws(ServerStartError) {
            return try ServerSide(
                configuration.upstreams, bootstrap: configuration.bootstrap, client: shared, ports: inbox.ownPorts,
                log: log)
        } catch { throw StartFailure("\(error)") }
    }

    private static func watching<Result: ~Copyable>(
        _ body: () throws(SystemCallError) -> Result
    ) throws(StartFailure) -> Result {
        try StartFailure.wrapping("cannot watch for DNS queries", body)
    }

    // MARK: For the owner's thread

    /// Starts the threads.
    func start() throws(SystemCallError) {
        try loop.register(orders.wakeUp.descriptor, token: Token.order, interest: .readable)
        try loop.register(shared.wakeUp.descriptor, token: Token.proxy, interest: .readable)
        try loop.register(inbox.wakeUp.descriptor, token: Token.inbox, interest: .readable)
        try clients.register(with: loop)
        try clients.startWorkers()
        thread = try OwnThread { self.run() }
    }

    /// Answers what comes out of a TUN device too; with nil no more.
    func serve(_ tun: consuming TUNDevice?) {
        var answers: TunnelAnswers?
        switch consume tun {
        case .some(let tun): answers = TunnelAnswers(tun)
        case .none: break
        }
        onThread {
            swap(&answers, &tunnel)
            inbox.isOpen = tunnel != nil
        }
    }

    /// Makes the proxy what a configuration says. It succeeds whole or changes nothing.
    func reload(_ new: DNSConfiguration, _ rules: RuleConfiguration?) throws(StartFailure) {
        var result: Result<Void, StartFailure> = .success(())
        onThread {
            do throws(StartFailure) { try change(to: new, rules) } catch { result = .failure(error) }
        }
        try result.get()
    }

    /// The way to the network is this one now.
    func pathChanged(_ path: NetworkPath) {
        onThread { shared.withProxy { $0.pathChanged(path, at: HostClock.now()) } }
    }

    /// The same addresses may be reached by other ways now.
    func routesChanged() {
        onThread { shared.withProxy { $0.networkChanged(at: HostClock.now()) } }
    }

    /// The machine slept and is awake again.
    func machineSlept() {
        onThread {
            shared.withProxy { proxy in
                proxy.sleep()
                proxy.wake(at: HostClock.now())
            }
        }
    }

    /// How the proxy is doing.
    func status() -> DNSServiceStatus {
        var status: DNSServiceStatus?
        onThread {
            status = DNSServiceStatus(
                proxy: shared.withProxy { $0.status(at: HostClock.now()) }, clients: clients.counts,
                servers: servers.status, lostInTunnel: inbox.droppedCount)
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

    /// Ends the threads. Who waits for an answer is told that there is nobody.
    func stop() {
        inbox.isOpen = false
        guard isRunning else { return }
        onThread {
            shared.withProxy { $0.stop(.providerDisabled, at: HostClock.now()) }
            act()
            clients.close(loop)
            servers.close(loop)
            tunnel = nil
            isEnding = true
        }
        if let thread = thread.take() { thread.join() }
    }

    /// Runs `body` on the proxy's thread, between two turns, and waits for it.
    private func onThread(_ body: () -> Void) {
        guard isRunning else { return body() }
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

    // MARK: The thread

    private func run() {
        var events = EventBuffer(capacity: 64)
        while !isEnding {
            do throws(SystemCallError) {
                try loop.wait(until: nextDeadline(), into: &events)
            } catch {
                // Nothing but a wrong argument or a lack of memory in the kernel does this to a loop that was set up.
                preconditionFailure("the DNS proxy's loop failed: \(error)")
            }
            var isOrdered = false
            for index in 0..<events.count {
                let event = events[index]
                switch event.token {
                case Token.order: isOrdered = orders.wakeUp.clear()
                case Token.proxy: _ = shared.wakeUp.clear()
                case Token.inbox: readInbox()
                default:
                    if !clients.handle(event, loop) { _ = servers.handle(event, loop) }
                }
            }
            handleDeadlines()
            act()
            if isOrdered {
                order?()
                if !isEnding { act() }
                orders.carriedOut()
            }
        }
    }

    private func nextDeadline() -> Instant? {
        var first = shared.withProxy { $0.nextDeadline }
        if let next = clients.nextDeadline { first = min(first ?? next, next) }
        if let next = servers.nextDeadline { first = min(first ?? next, next) }
        if let next = hostFiles.nextDeadline { first = min(first ?? next, next) }
        return first
    }

    private func handleDeadlines() {
        let now = HostClock.now()
        shared.withProxy { proxy in
            if let deadline = proxy.nextDeadline, deadline <= now { proxy.handleDeadlines(at: now) }
        }
        if let deadline = clients.nextDeadline, deadline <= now { clients.handleDeadlines(at: now, loop) }
        if let deadline = servers.nextDeadline, deadline <= now { servers.handleDeadlines(at: now, loop) }
        if let deadline = hostFiles.nextDeadline, deadline <= now { lookAtHosts(at: now) }
    }

    /// Does what the proxy wants done, and what comes of that.
    private func act() {
        var actions = takeActions()
        repeat {
            let now = HostClock.now()
            for action in actions { perform(action, at: now) }
            servers.flush(loop)
            actions = takeActions()
        } while !actions.isEmpty
        clients.flush()
    }

    private func takeActions() -> [DNSProxyAction] {
        shared.lock()
        defer { shared.unlock() }
        for report in shared.proxy.takeReports() { clients.note(report) }
        return shared.proxy.takeActions()
    }

    private func perform(_ action: DNSProxyAction, at now: Instant) {
        switch action {
        case .exchange(let exchange): servers.begin(exchange, at: now, loop)
        case .cancel(let id): servers.cancel(id, at: now, loop)
        case .answer(let token, let answer):
            if let client = clients.deliver(answer, to: token, loop) {
                tunnel?.send(answer.span.octets, to: client.client, from: client.server)
            }
        case .resetConnections: servers.resetConnections(at: now, loop)
        case .log(let level, let message): log.write(message, importance: level)
        }
    }

    // MARK: Queries from the TUN device

    private func readInbox() {
        _ = inbox.wakeUp.clear()
        for query in inbox.takeAll() { answer(query) }
    }

    private func answer(_ query: QueryInbox.Query) {
        var buffer: [UInt8] = []
        swap(&buffer, &output)
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        shared.lock()
        let decision = shared.proxy.handle(
            query: query.bytes.span.octets, from: shared.datagramClients.nextToken, by: .udp, at: HostClock.now(),
            into: &output)
        shared.note(
            decision, on: query.bytes.span.octets, output.bytes, from: query.client.address, by: .udp,
            isTunnelled: true, at: HostClock.now())
        if decision == .pending {
            shared.datagramClients.add(
                DatagramClient(origin: .tunnel, client: query.client, server: query.server))
        }
        shared.unlock()
        if case .answer(let count) = decision {
            tunnel?.send(output.bytes.extracting(..<count), to: query.client, from: query.server)
        }
        self.output = buffer
    }

    // MARK: Another configuration

    private func change(to new: DNSConfiguration, _ rules: RuleConfiguration?) throws(StartFailure) {
        let changed = DNSProxyConfiguration(new, rules)
        do throws(DNSProxyError) { try changed.check() } catch { throw StartFailure("dns: \(error)") }
        let hosts = try Self.readHosts(new)
        var servers: ServerSide?
        if configuration.upstreams != new.upstreams || configuration.bootstrap != new.bootstrap {
            servers = try Self.openServers(of: new, shared, inbox, log)
        }
        do throws(ClientSideError) {
            let secure = try clients.openSecureListeners(for: new.secureListen)
            try clients.changeListeners(to: new.listen, orUndo: secure, loop)
            clients.adopt(secure, loop)
        } catch { throw StartFailure("\(error)") }
        // From here on nothing fails: the core's check has passed.
        shared.withProxy { proxy in
            do throws(DNSProxyError) {
                // The queries that are under way are asked anew, of the new servers.
                try proxy.reload(changed, at: HostClock.now())
            } catch { preconditionFailure("a configuration that was checked: \(error)") }
        }
        adoptHosts(hosts)
        clients.setClientIdle(new.clientIdle)
        changeQueryLog(to: new)
        configuration = new
        if var servers {
            swap(&servers, &self.servers)
            servers.close(loop)
        }
    }

    private func changeQueryLog(to new: DNSConfiguration) {
        shared.lock()
        defer { shared.unlock() }
        if configuration.upstreams != new.upstreams { shared.queryLog.forgetUpstreams() }
        shared.setQueryLog(new.queryLog)
    }
}
