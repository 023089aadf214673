internal import ByteAccess
internal import DNSProxy
internal import Provider
internal import WireGuard

/// What the DNS proxy's own thread works with, and its turns: it waits for something to happen, does what that asks for and what is due,
/// and then what the proxy wants done.
///
/// It is a value, which the thread has for itself while it runs: nothing has to be checked at run time to know that nobody else is at it.
struct ProxyLoop: ~Copyable {
    private enum Token {
        static let order: UInt64 = 0
        static let proxy: UInt64 = 1
        static let inbox: UInt64 = 2
    }

    let shared: SharedProxy
    private let inbox: QueryInbox
    let log: Log
    /// The hosts files.
    var hostFiles: HostFiles
    private(set) var clients: ClientSide
    private(set) var servers: ServerSide
    private var events: EventLoop
    private var configuration: DNSConfiguration
    private var tunnel: TunnelAnswers?
    /// Room for an answer; taken out of here while it is used.
    private var output = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)
    /// Room for actions; taken out of here while it is used.
    private var spareActions: [DNSProxyAction] = []
    private var isEnding = false
    private let passedByAddress = PassedByAddress()

    /// Opens what a configuration asks for. Nothing is answered before `run`.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    init(
        _ configuration: DNSConfiguration, _ rules: RuleConfiguration?, shared: SharedProxy, inbox: QueryInbox, log: Log
    ) throws(StartFailure) {
        let events = try StartFailure.wrappingWatch { () throws(SystemCallError) in try EventLoop() }
        let servers = try Self.openServers(of: configuration, shared, inbox, log)
        let hostFiles = try HostFiles(of: configuration)
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
        self.hostFiles = hostFiles
        self.clients = clients
        self.servers = servers
        self.events = events
        self.configuration = configuration
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

    /// Watches all that a turn may begin with, and starts the further threads.
    mutating func watch(_ orders: borrowing WakeUp) throws(SystemCallError) {
        try events.register(orders.descriptor, token: Token.order, interest: .readable)
        try events.register(shared.wakeUp.descriptor, token: Token.proxy, interest: .readable)
        try events.register(inbox.wakeUp.descriptor, token: Token.inbox, interest: .readable)
        try clients.register(with: events)
        try clients.startWorkers()
    }

    // MARK: Turns

    /// Runs until `end()`.
    ///
    /// - Parameter carryOut: Does what is ordered. It is called between two turns, once for each time that `orders` was raised.
    mutating func run(_ orders: borrowing WakeUp, _ carryOut: (inout ProxyLoop) -> Void) {
        var happened = EventBuffer(capacity: 64)
        while !isEnding {
            do throws(SystemCallError) {
                try events.wait(until: nextDeadline, into: &happened)
            } catch {
                // Nothing but a wrong argument or a lack of memory in the kernel does this to a loop that was set up.
                preconditionFailure("the DNS proxy's loop failed: \(error)")
            }
            var isOrdered = false
            for index in 0..<happened.count {
                let event = happened[index]
                switch event.token {
                case Token.order: isOrdered = orders.clear()
                case Token.proxy: _ = shared.wakeUp.clear()
                case Token.inbox: readInbox()
                default:
                    if !clients.handle(event, events) { _ = servers.handle(event, events) }
                }
            }
            handleDeadlines()
            act()
            if isOrdered { carryOut(&self) }
        }
    }

    private var nextDeadline: Instant? {
        var first = shared.withProxy { $0.nextDeadline }
        if let next = clients.nextDeadline { first = min(first ?? next, next) }
        if let next = servers.nextDeadline { first = min(first ?? next, next) }
        if let next = hostFiles.nextDeadline { first = min(first ?? next, next) }
        return first
    }

    private mutating func handleDeadlines() {
        let now = HostClock.now()
        shared.withProxy { proxy in
            if let deadline = proxy.nextDeadline, deadline <= now { proxy.handleDeadlines(at: now) }
        }
        if let deadline = clients.nextDeadline, deadline <= now { clients.handleDeadlines(at: now, events) }
        if let deadline = servers.nextDeadline, deadline <= now { servers.handleDeadlines(at: now, events) }
        if let deadline = hostFiles.nextDeadline, deadline <= now { lookAtHosts(at: now) }
    }

    /// Does what the proxy wants done, and what comes of that.
    mutating func act() {
        var actions: [DNSProxyAction] = []
        swap(&actions, &spareActions)
        takeActions(into: &actions)
        repeat {
            let now = HostClock.now()
            for action in actions { perform(action, at: now) }
            servers.flush(events)
            // After a burst its room is given back.
            actions.removeAll(keepingCapacity: actions.count <= 1024)
            takeActions(into: &actions)
        } while !actions.isEmpty
        swap(&actions, &spareActions)
        clients.flush()
    }

    private mutating func takeActions(into actions: inout [DNSProxyAction]) {
        shared.lock()
        defer { shared.unlock() }
        for report in shared.proxy.takeReports() { clients.note(report) }
        shared.proxy.takeActions(into: &actions)
    }

    private mutating func perform(_ action: DNSProxyAction, at now: Instant) {
        switch action {
        case .exchange(let exchange): servers.begin(exchange, at: now, events)
        case .cancel(let id): servers.cancel(id, at: now, events)
        case .answer(let token, let answer):
            if let client = clients.deliver(answer, to: token, events) {
                tunnel?.send(answer.span.octets, to: client.client, from: client.server)
            }
        case .resetConnections: servers.resetConnections(at: now, events)
        case .log(let level, let message): log.write(message, importance: level)
        }
    }

    /// Ends the turns: who waits for an answer is told that there is nobody, and everything is closed.
    mutating func end() {
        shared.withProxy { $0.stop(.providerDisabled, at: HostClock.now()) }
        act()
        clients.close(events)
        servers.close(events)
        tunnel = nil
        isEnding = true
    }

    // MARK: Queries from the TUN device

    /// Answers what comes out of a TUN device too; with nil no more.
    mutating func exchange(_ answers: inout TunnelAnswers?) {
        swap(&answers, &tunnel)
        inbox.isOpen = tunnel != nil
    }

    private mutating func readInbox() {
        _ = inbox.wakeUp.clear()
        for query in inbox.takeAll() { answer(query) }
    }

    private mutating func answer(_ query: QueryInbox.Query) {
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

    /// Makes everything what a configuration says. It succeeds whole or changes nothing.
    mutating func change(to new: DNSConfiguration, _ rules: RuleConfiguration?) throws(StartFailure) {
        let changed = DNSProxyConfiguration(new, rules)
        do throws(DNSProxyError) { try changed.check() } catch { throw StartFailure("dns: \(error)") }
        let hosts = try HostFiles(of: new)
        var servers: ServerSide?
        if configuration.upstreams != new.upstreams || configuration.bootstrap != new.bootstrap {
            servers = try Self.openServers(of: new, shared, inbox, log)
        }
        do throws(ClientSideError) {
            let secure = try clients.openSecureListeners(for: new.secureListen)
            try clients.changeListeners(to: new.listen, orUndo: secure, events)
            clients.adopt(secure, events)
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
            servers.close(events)
        }
    }

    private mutating func changeQueryLog(to new: DNSConfiguration) {
        shared.lock()
        defer { shared.unlock() }
        if configuration.upstreams != new.upstreams { shared.queryLog.forgetUpstreams() }
        shared.setQueryLog(new.queryLog)
    }
}
