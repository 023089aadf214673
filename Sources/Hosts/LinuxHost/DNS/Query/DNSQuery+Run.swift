internal import DNSMessage
internal import DNSProxy
internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import WireGuard

/// How a question went.
public enum DNSQueryResult: Equatable, Sendable {
    /// The answer, whatever it says, as text of many lines.
    case answer(String)
    /// There was none, or no way to the server; why.
    case noAnswer(String)
    /// The server could not prove who it is, so that it was not asked; why.
    case untrusted(String)
    /// Something on this machine is not as it has to be.
    case failed(String)
}

extension DNSQuery {
    /// How often a datagram is sent.
    private static var datagramCount: UInt64 { 3 }

    /// Asks, and waits for the answer.
    public func run() -> DNSQueryResult {
        do throws(SystemCallError) {
            var loop = try EventLoop()
            let deadline = HostClock.now() + timeout
            var question = self
            if case .name(let host) = upstream.host, upstream.addresses.isEmpty {
                question.upstream.addresses = try Self.addresses(of: host, until: deadline, &loop)
                guard !question.upstream.addresses.isEmpty else {
                    return .noAnswer("the machine's resolver knows no address of \(host)")
                }
            }
            return try question.ask(until: deadline, &loop)
        } catch {
            return .failed("\(error)")
        }
    }

    /// What the machine's resolver knows of a host; nothing when it does not.
    private static func addresses(
        of host: String, until deadline: Instant, _ loop: inout EventLoop
    ) throws(SystemCallError) -> [IPAddress] {
        let resolution = try NameResolution()
        try loop.register(resolution.wakeUp.descriptor, token: 0, interest: .readable)
        resolution.start(EndpointName(host: host, port: 53), id: 0, deadline: deadline)
        var events = EventBuffer(capacity: 1)
        var addresses: [IPAddress] = []
        try loop.wait(until: deadline, into: &events)
        if let outcome = resolution.takeOutcomes().first, case .success(let endpoints) = outcome.result {
            for endpoint in endpoints where !addresses.contains(endpoint.address) { addresses.append(endpoint.address) }
        }
        try loop.unregister(resolution.wakeUp.descriptor)
        return addresses
    }

    private func ask(until deadline: Instant, _ loop: inout EventLoop) throws(SystemCallError) -> DNSQueryResult {
        let client = QuestionClient(self)
        var servers: ServerExchanges<QuestionClient>
        do throws(ServerStartError) {
            servers = try ServerExchanges(
                [upstream], bootstrap: [], client: client, log: Log(level: .silent, name: "sluice"))
        } catch {
            return .failed(error.description)
        }
        let start = HostClock.now()
        let transport = upstream.transport.exchangeTransport
        let pause = Interval(nanoseconds: timeout.nanoseconds / Self.datagramCount)
        var nextAttempt: Instant? = transport == .udp ? start + pause : nil
        servers.begin(client.makeExchange(by: transport, deadline: deadline), at: start, loop)
        var events = EventBuffer(capacity: 16)
        while client.outcome == nil {
            servers.flush(loop)
            if client.outcome != nil { break }
            let due = [deadline, nextAttempt, servers.nextDeadline].compactMap { $0 }.min()
            try loop.wait(until: due, into: &events)
            for index in 0..<events.count { _ = servers.handle(events[index], loop) }
            let now = HostClock.now()
            servers.handleDeadlines(at: now, loop)
            if client.needsTCP {
                nextAttempt = nil
                servers.begin(client.makeExchange(by: .tcp, deadline: deadline), at: now, loop)
            } else if let next = nextAttempt, next <= now, now < deadline, client.outcome == nil {
                nextAttempt = next + pause
                servers.begin(client.makeExchange(by: .udp, deadline: deadline), at: now, loop)
            }
            if now >= deadline { break }
        }
        let elapsed = HostClock.now().since(start)
        let status = servers.status[0]
        servers.close(loop)
        switch client.outcome {
        case .answer(let message, let transport):
            return .answer(
                AnswerText(message: message, elapsed: elapsed, transport: transport, upstream: upstream).text)
        case .failed(.untrusted):
            return .untrusted("the server is not trusted: \(status.trustProblem?.text ?? "it did not say who it is")")
        case .failed(let failure): return .noAnswer("no answer: \(status.lastProblem?.text ?? failure.description)")
        case nil: return .noAnswer("no answer: \(status.lastProblem?.text ?? ExchangeFailure.timedOut.description)")
        }
    }
}

extension DNSUpstreamConfiguration.Transport {
    /// What the core calls it.
    fileprivate var exchangeTransport: ExchangeTransport {
        switch self {
        case .udp: .udp
        case .tcp: .tcp
        case .tls: .tls
        case .https: .https
        }
    }
}
