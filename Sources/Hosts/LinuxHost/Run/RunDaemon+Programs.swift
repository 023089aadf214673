internal import PacketTunnel
internal import Provider
internal import WireGuard

// What programs ask over the control socket.
extension RunDaemon {
    /// Does what programs ask for. One that sent several requests has the next one read when the one before is answered.
    mutating func note(_ outcome: AppMessageServer.Outcome) {
        var outcome = outcome
        while outcome != .nothing { outcome = handle(outcome) }
    }

    /// Returns what is to be handled next.
    private mutating func handle(_ outcome: AppMessageServer.Outcome) -> AppMessageServer.Outcome {
        switch outcome {
        case .nothing: break
        case .request(let id, .status(let revision, let timeLimit)):
            tell(.appMessage(id, .status(after: revision, timeLimit: timeLimit)))
        case .request(let id, .queries(let request)): return answer(id, request)
        case .request(let id, .flushDNS(let name)):
            guard let dns else { return refuse(id, "there is no DNS proxy") }
            return messages.reply(id, ControlAnswer.flushed(dns.flushCache(of: name)), loop)
        case .invalid(let id, let error): return refuse(id, error.description)
        case .left(let id):
            watchers.leave(id)
            tell(.appLeft(id))
        }
        return .nothing
    }

    private mutating func refuse(_ id: AppMessageID, _ reason: String) -> AppMessageServer.Outcome {
        messages.reply(id, ControlAnswer.failure(reason), loop)
    }

    // MARK: The log of queries

    /// Answers the programs whose time has come.
    mutating func answerWatchers(at now: Instant) {
        for (id, number) in watchers.due(at: now) { note(answer(id, QueryLogRequest(from: number))) }
    }

    /// Answers all programs that wait: what they wait for may never come.
    mutating func answerAllWatchers() {
        for (id, number) in watchers.all() { note(answer(id, QueryLogRequest(from: number))) }
    }

    /// Answers a program that asks for queries, or lets it wait for the next ones.
    private mutating func answer(_ id: AppMessageID, _ request: QueryLogRequest) -> AppMessageServer.Outcome {
        guard let dns else { return refuse(id, "there is no DNS proxy") }
        let mayWait = request.first != nil && request.timeLimit.nanoseconds > 0
        let excerpt = dns.queries(from: request.first, limit: QueryLogRequest.limit, awaitsMore: mayWait)
        guard excerpt.detail != .off else { return refuse(id, "the log of queries is off (dns.queryLog)") }
        guard mayWait, excerpt.queries.isEmpty, excerpt.lostCount == 0 else {
            let json = excerpt.json(now: HostClock.now(), wallClock: HostClock.wallClock())
            return messages.reply(id, json.text + "\n", loop)
        }
        guard watchers.hold(id, for: excerpt.next, timeLimit: request.timeLimit, at: HostClock.now()) else {
            return refuse(id, "too many programs wait for a query")
        }
        return .nothing
    }

    // MARK: The status

    /// Passes the provider's answer on, with what the host knows besides.
    mutating func reply(_ id: AppMessageID, _ reply: PacketTunnelProvider.AppMessageReply) {
        switch reply {
        case .status(let status): note(messages.reply(id, statusText(status).json.text + "\n", loop))
        case .tooManyAskers: note(refuse(id, "too many programs wait for a change"))
        }
    }

    private mutating func statusText(_ status: TunnelStatus) -> StatusText {
        var text = StatusText(status: status, interfaceName: name?.string, table: applied?.table)
        switch interface {
        case .none: break
        case .some(let interface):
            text.maximumTransmissionUnit = interface.maximumTransmissionUnit
            text.offloads = interface.offloadState
            text.workers = interface.workerCount
        }
        text.dns = dns?.status()
        text.resolverKeeper = resolverKeeper
        withDeviceIfAny { device in
            text.listenPort = device.listenPort == 0 ? nil : device.listenPort
            text.firewallMark = device.firewallMark
            text.peers = device.snapshots
            text.drops = DropReason.allCases.map { ($0, device.drops[$0]) }.filter { $0.1 > 0 }
        }
        return text
    }
}
