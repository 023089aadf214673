internal import ByteAccess
internal import DNSProxy
internal import EncryptedDNS
internal import IPPacket
internal import Provider

extension ServerExchanges {
    /// Sends a query by a connection, or keeps it until there is one.
    mutating func place(
        _ waiting: WaitingExchange, _ upstream: ServerUpstream, at now: Instant, _ loop: borrowing EventLoop
    ) {
        var waiting = waiting
        let id = waiting.exchange.id
        // Each turn that does not end it uses up an address, or a connection.
        while true {
            if let socket = freshSocket(for: waiting, upstream) {
                if send(waiting.exchange, by: socket, at: now) { return }
                continue
            }
            switch choose(&waiting, upstream, at: now, loop) {
            case .use(let connection):
                // A connection that could not even be begun is gone already.
                guard let socket = upstream.socket(connection) else { continue }
                guard socket.isReady else { return keep(waiting, upstream, at: now) }
                if send(waiting.exchange, by: socket, at: now) { return }
            case .waitForAddresses, .full: return keep(waiting, upstream, at: now)
            case .unavailable: return fail(id, upstream.failure, at: now)
            }
        }
    }

    /// The connection that was opened for a query that needs a fresh one, or one behind it, when it takes the query at once.
    private func freshSocket(for waiting: WaitingExchange, _ upstream: ServerUpstream) -> StreamSocket? {
        guard let fresh = waiting.fresh else { return nil }
        return upstream.sockets.first { socket in
            socket.isReady && socket.capacity == .takesMore && socket.id.rawValue >= fresh.rawValue
        }
    }

    private mutating func choose(
        _ waiting: inout WaitingExchange, _ upstream: ServerUpstream, at now: Instant, _ loop: borrowing EventLoop
    ) -> UpstreamConnections<IPAddress>.Choice {
        var actions: [UpstreamConnections<IPAddress>.Action] = []
        let needsFresh = waiting.exchange.needsFreshConnection
        let choice = upstream.connections.choose(needsFresh: needsFresh, at: now, actions: &actions)
        if case .use(let connection) = choice, needsFresh { waiting.fresh = connection }
        perform(actions, upstream, at: now, loop)
        return choice
    }

    private mutating func keep(_ waiting: WaitingExchange, _ upstream: ServerUpstream, at now: Instant) {
        let id = waiting.exchange.id
        guard upstream.waiting.count < ServerUpstream.waitingLimit else { return fail(id, .overloaded, at: now) }
        upstream.waiting.append(waiting)
        places.set(.waiting(upstream), for: id)
    }

    /// False when the connection takes no more.
    private mutating func send(_ exchange: Exchange, by socket: StreamSocket, at now: Instant) -> Bool {
        guard let count = writeQuery(of: exchange, at: now) else {
            places.remove(exchange.id)
            return true
        }
        do throws(SendError) {
            try socket.connection?.send(
                buffer.span.octets.extracting(..<count), exchange: exchange.id, deadline: exchange.deadline, at: now)
        } catch {
            switch error {
            case .closed, .full:
                noteCapacity(of: socket)
                // What says that it takes more and does not, takes no more: this ends.
                if socket.capacity == .takesMore { setCapacity(of: socket, .takesNoMore) }
                markDirty(socket)
                return false
            case .invalidQuery, .repeatedExchange:
                fail(exchange.id, .invalidAnswer, at: now)
                return true
            }
        }
        places.set(.stream(socket, since: now, patience: exchange.patience), for: exchange.id)
        noteCapacity(of: socket)
        markDirty(socket)
        return true
    }

    /// Tells the upstream when a connection takes no more, or takes some again.
    mutating func noteCapacity(of socket: StreamSocket) {
        guard socket.isReady, !socket.isOver, !socket.isDoubtful, let takesMore = socket.connection?.canTakeMore else {
            return
        }
        if takesMore { return setCapacity(of: socket, .takesMore) }
        setCapacity(of: socket, socket.connection?.isBusy ?? false ? .busy : .takesNoMore)
    }

    private func setCapacity(of socket: StreamSocket, _ capacity: StreamSocket.Capacity) {
        guard capacity != socket.capacity else { return }
        socket.capacity = capacity
        socket.upstream.connections.changed(
            socket.id, canTakeMore: capacity == .takesMore, isBusy: capacity == .busy)
        if capacity == .takesMore { socket.upstream.needsReview = true }
    }

    /// An exchange is given up that the server had time for. When nothing else was answered on the connection meanwhile, it may live and
    /// bring no answers: nothing more is asked on it until it does.
    mutating func doubt(_ socket: StreamSocket, since begin: Instant, _ patience: Interval, at now: Instant) {
        guard now.since(begin) >= patience, socket.lastAnswer.map({ $0 < begin }) ?? true else { return }
        socket.isDoubtful = true
        setCapacity(of: socket, .takesNoMore)
    }

    mutating func markDirty(_ socket: StreamSocket) {
        if socket.isDirty { return }
        socket.isDirty = true
        dirty.append(socket)
    }
}
