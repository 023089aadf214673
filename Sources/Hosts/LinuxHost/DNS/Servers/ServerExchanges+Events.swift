internal import DNSProxy
internal import EncryptedDNS
internal import Provider

extension ServerExchanges {
    /// Does what an event of the loop asks for. False when the event is of something else.
    mutating func handle(_ event: Event, _ loop: borrowing EventLoop) -> Bool {
        guard Self.tokens.contains(event.token) else { return false }
        let now = HostClock.now()
        // What is gone since the wait is not there any more.
        if let datagram = datagrams[event.token] {
            handleDatagram(datagram, at: now, loop)
        } else if let socket = streams[event.token] {
            handleStream(socket, event.readiness, at: now, loop)
        } else if let question = bootstrapSockets[event.token] {
            handleBootstrap(question, at: now, loop)
        }
        settle(at: now, loop)
        return true
    }

    /// Does what is due.
    mutating func handleDeadlines(at now: Instant, _ loop: borrowing EventLoop) {
        guard let earliest = earliestDeadline, earliest <= now else { return }
        expireDatagrams(at: now)
        expireQueuedDatagrams(at: now)
        expireLookups(at: now, loop)
        for socket in streams.elements where !socket.isOver {
            if socket.connection == nil {
                if socket.connectDeadline <= now { finish(socket, .connectTimedOut, at: now, loop) }
            } else if let next = socket.connection?.nextDeadline, next <= now {
                socket.connection?.handleDeadlines(at: now)
                takeEvents(of: socket, at: now, loop)
            }
        }
        for upstream in upstreams {
            expireWaiting(upstream, at: now)
            if let next = upstream.connections.nextDeadline, next <= now {
                perform(upstream.connections.handleDeadlines(at: now), upstream, at: now, loop)
            }
        }
        settle(at: now, loop)
        earliestDeadline = nil
        for datagram in datagrams.elements { noteDeadline(datagram.exchange.deadline) }
        for exchange in queuedDatagrams { noteDeadline(exchange.deadline) }
        for lookup in lookups { noteDeadline(lookup.deadline) }
        for socket in streams.elements {
            noteDeadline(socket.connection == nil ? socket.connectDeadline : socket.connection?.nextDeadline)
        }
        for upstream in upstreams {
            noteDeadline(upstream.connections.nextDeadline)
            for waiting in upstream.waiting { noteDeadline(waiting.exchange.deadline) }
            for exchange in upstream.waitingDatagrams { noteDeadline(exchange.deadline) }
        }
    }

    /// Writes what there is to be sent, all queries of a turn together. To be called at the end of each turn.
    mutating func flush(_ loop: borrowing EventLoop) {
        beginQueuedDatagrams(loop)
        // A connection that fails may bring more to be sent by another.
        while !dirty.isEmpty {
            let sockets = dirty
            dirty = []
            for socket in sockets {
                socket.isDirty = false
                guard !socket.isOver else { continue }
                let now = HostClock.now()
                if withBuffer({ socket.flush(by: &$0) }) == .ended { socket.connection?.endOfStream() }
                // Putting queries into bytes may have ended some of them, or everything.
                tellEvents(of: socket, at: now, loop)
                settle(at: now, loop)
                noteDeadline(socket.connection?.nextDeadline)
            }
        }
    }

    /// Ends what has waited for a connection or an address for too long.
    private mutating func expireWaiting(_ upstream: ServerUpstream, at now: Instant) {
        let late =
            upstream.waiting.map(\.exchange).filter { $0.deadline <= now }
            + upstream.waitingDatagrams.filter { $0.deadline <= now }
        guard !late.isEmpty else { return }
        upstream.waiting.removeAll { $0.exchange.deadline <= now }
        upstream.waitingDatagrams.removeAll { $0.deadline <= now }
        for exchange in late { fail(exchange.id, .timedOut, at: now) }
    }
}
