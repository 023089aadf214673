internal import Provider

/// What every connection has in common: how far it is, what is under way, and what its owner has not been told yet.
///
///     handshaking ── server trusted ──▶ open ──┐
///          └─────── failed, abandoned ─────────┴── ended by either side, silent, idle ──▶ over
struct ConnectionProgress {
    enum Phase {
        case handshaking
        case open
        case over
    }

    /// What a deadline asks for beyond what is done here.
    enum Demand {
        /// Ask whether the server is there.
        case probe
        /// An exchange is over; its stream is not wanted any more.
        case forget(key: Int32)
        /// The connection is to be ended.
        case end(ConnectionError)
    }

    let limits: ConnectionLimits
    private(set) var phase = Phase.handshaking
    var exchanges = ExchangeTable()
    /// True when a query has been met with silence: nothing new is sent until something comes.
    private(set) var isSuspect = false
    private var events: [ConnectionEvent] = []
    /// How many of the events the owner has been told.
    private var toldCount = 0
    /// When the handshake has to be done, or nobody has used the connection for too long.
    private var phaseDeadline: Instant?

    init(_ limits: ConnectionLimits, at now: Instant) {
        self.limits = limits
        phaseDeadline = now + limits.handshakeInterval
    }

    mutating func nextEvent() -> ConnectionEvent? {
        guard toldCount < events.count else { return nil }
        let event = events[toldCount]
        toldCount += 1
        if toldCount == events.count {
            // The room is kept for what comes next; after a burst it is given back.
            events.removeAll(keepingCapacity: events.count <= limits.exchangeCount)
            toldCount = 0
        }
        return event
    }

    mutating func tell(_ event: ConnectionEvent) { events.append(event) }

    /// The handshake is done.
    mutating func becomeOpen(at now: Instant) {
        guard phase == .handshaking else { return }
        phase = .open
        tell(.ready)
        phaseDeadline = nil
        noteIdleness(at: now)
    }

    /// The server has said something. What TLS says to itself does not count: tickets come behind the first query.
    mutating func hear() {
        exchanges.hear()
        isSuspect = false
    }

    /// To be called when exchanges may have ended.
    mutating func noteIdleness(at now: Instant) {
        guard phase == .open else { return }
        if !exchanges.isEmpty {
            phaseDeadline = nil
        } else if phaseDeadline == nil {
            phaseDeadline = now + limits.idleInterval
        }
    }

    /// Ends everything: each exchange fails with the same error.
    mutating func end(_ error: ConnectionError) {
        guard phase != .over else { return }
        phase = .over
        phaseDeadline = nil
        for entry in exchanges.removeAll() { tell(.failed(entry.id, error)) }
        tell(.closed(error))
    }

    var nextDeadline: Instant? {
        guard let phaseDeadline else { return exchanges.nextDeadline }
        guard let next = exchanges.nextDeadline else { return phaseDeadline }
        return min(phaseDeadline, next)
    }

    /// The next thing that time asks for; nil when nothing is due any more.
    mutating func nextDemand(at now: Instant) -> Demand? {
        while let due = exchanges.nextDue(at: now) {
            switch due {
            case .probe:
                if phase == .open { return .probe }
            case .overdue(let id):
                isSuspect = true
                tell(.overdue(id))
            case .expired(let entry, let isSilent):
                tell(.failed(entry.id, .timedOut))
                noteIdleness(at: now)
                if isSilent, phase == .open { return .end(.silent) }
                return .forget(key: entry.key)
            }
        }
        guard let phaseDeadline, phaseDeadline <= now else { return nil }
        self.phaseDeadline = nil
        return .end(phase == .handshaking ? .timedOut : .idle)
    }
}
