internal import ByteAccess
internal import DNSProxy
internal import EncryptedDNS
internal import IPPacket
internal import Provider

extension ServerExchanges {
    /// Does what the upstream's connections want done.
    mutating func perform(
        _ actions: [UpstreamConnections<IPAddress>.Action], _ upstream: ServerUpstream, at now: Instant,
        _ loop: borrowing EventLoop
    ) {
        for action in actions {
            switch action {
            case .open(let id, let address): open(id, address, upstream, at: now, loop)
            case .close(let id):
                guard let socket = upstream.socket(id) else { continue }
                socket.connection?.abandon()
                forget(socket)
                endExchanges(of: socket, at: now)
            case .resolve: startLookup(upstream, at: now, loop)
            }
        }
    }

    private mutating func open(
        _ id: ConnectionID, _ address: IPAddress, _ upstream: ServerUpstream, at now: Instant,
        _ loop: borrowing EventLoop
    ) {
        do throws(SystemCallError) {
            let server = AddressAndPort(address: address, port: upstream.configuration.port)
            let socket = StreamSocket(
                try ServerSocket.stream(to: server, ports: ports), id: id, upstream: upstream, address: address, at: now
            )
            socket.token = streams.add(socket)
            do throws(SystemCallError) {
                try socket.register(loop)
            } catch {
                streams.remove(socket.token)
                throw error
            }
            upstream.sockets.append(socket)
            noteDeadline(socket.connectDeadline)
            noteDeadline(upstream.connections.nextDeadline)
        } catch {
            note(.system(error), upstream)
            perform(upstream.connections.failed(id, at: now), upstream, at: now, loop)
            upstream.needsReview = true
        }
    }

    /// The socket of a connection has something, or takes something.
    mutating func handleStream(
        _ socket: StreamSocket, _ readiness: EventReadiness, at now: Instant, _ loop: borrowing EventLoop
    ) {
        if socket.connection == nil {
            guard !readiness.isDisjoint(with: [.writable, .error, .hangUp]) else { return }
            switch socket.takeConnectResult() {
            case .failure(let error): return finish(socket, .system(error), at: now, loop)
            case .success:
                do throws(ConnectionError) {
                    socket.connection = try socket.upstream.streamProtocol.makeConnection(
                        resuming: socket.upstream.session.take(), at: now)
                } catch {
                    return finish(socket, .connection(error), at: now, loop)
                }
            }
        }
        if readiness.contains(.writable) {
            socket.unblock()
            markDirty(socket)
        }
        if !readiness.isDisjoint(with: [.readable, .error, .hangUp]) {
            let untilEnd = !readiness.isDisjoint(with: [.error, .hangUp])
            let outcome = withBuffer { socket.receive(by: &$0, untilEnd: untilEnd, at: now) }
            if outcome == .ended { socket.connection?.endOfStream() }
        }
        takeEvents(of: socket, at: now, loop)
    }

    /// Tells what happened on a connection to whom it concerns, and what that means for the connection.
    mutating func takeEvents(of socket: StreamSocket, at now: Instant, _ loop: borrowing EventLoop) {
        tellEvents(of: socket, at: now, loop)
        guard !socket.isOver else { return }
        noteCapacity(of: socket)
        markDirty(socket)
    }

    /// Tells what happened on a connection to whom it concerns.
    mutating func tellEvents(of socket: StreamSocket, at now: Instant, _ loop: borrowing EventLoop) {
        if socket.isOver { return }
        while let event = socket.connection?.nextEvent() {
            switch event {
            case .ready:
                socket.isReady = true
                trust(socket.upstream)
                socket.upstream.needsReview = true
                perform(socket.upstream.connections.opened(socket.id, at: now), socket.upstream, at: now, loop)
            case .closed(let error): return finish(socket, .connection(error), at: now, loop)
            // It takes nothing new until something comes; what else is to be done is the client's to say.
            case .overdue: break
            case .answer:
                (socket.lastAnswer, socket.isDoubtful) = (now, false)
                tell(event, of: socket, at: now)
            case .failed: tell(event, of: socket, at: now)
            }
        }
    }

    /// Tells the client how an exchange ended.
    private mutating func tell(_ event: ConnectionEvent, of socket: StreamSocket, at now: Instant) {
        switch event {
        case .answer(let answer):
            places.remove(answer.exchange)
            let disposition = client.received(
                answer.message.span.octets, for: answer.exchange, freshness: answer.freshness, at: now)
            // A connection brings one answer to a query.
            if disposition == .keepWaiting { client.failed(answer.exchange, .invalidAnswer, at: now) }
        case .failed(let id, let error):
            let problem = ServerProblem.connection(error)
            if !problem.isNormalEnd { socket.upstream.lastProblem = problem }
            fail(id, error.exchangeFailure, at: now)
        case .ready, .overdue, .closed: break
        }
    }

    private mutating func endExchanges(of socket: StreamSocket, at now: Instant) {
        while let event = socket.connection?.nextEvent() { tell(event, of: socket, at: now) }
    }

    /// A connection is over.
    mutating func finish(
        _ socket: StreamSocket, _ problem: ServerProblem, at now: Instant, _ loop: borrowing EventLoop
    ) {
        guard !socket.isOver else { return }
        let upstream = socket.upstream
        forget(socket)
        endExchanges(of: socket, at: now)
        note(problem, upstream)
        let actions =
            if socket.isReady {
                upstream.connections.closed(socket.id, isFailure: problem.isFault, at: now)
            } else {
                upstream.connections.failed(socket.id, isUntrusted: upstream.trustProblem != nil, at: now)
            }
        upstream.needsReview = true
        perform(actions, upstream, at: now, loop)
    }

    /// Takes a connection off all lists; its socket is closed when nobody refers to it any more.
    private mutating func forget(_ socket: StreamSocket) {
        if let session = socket.connection?.takeResumption() { socket.upstream.session = consume session }
        // What there is to be said at the end: an alert, or that nothing more comes.
        _ = withBuffer { socket.flush(by: &$0) }
        socket.isOver = true
        streams.remove(socket.token)
        socket.upstream.sockets.removeAll { $0 === socket }
    }

    /// Keeps why a connection came to nothing, and says when a server is not to be trusted.
    private mutating func note(_ problem: ServerProblem, _ upstream: ServerUpstream) {
        if problem.isNormalEnd { return }
        upstream.lastProblem = problem
        guard case .connection(.untrusted(let certificate)) = problem else {
            upstream.trustProblem = nil
            return
        }
        guard upstream.trustProblem != certificate else { return }
        upstream.trustProblem = certificate
        log.error("the upstream \(public: upstream.name) is not trusted: \(public: certificate.text)")
    }

    private mutating func trust(_ upstream: ServerUpstream) {
        guard upstream.trustProblem != nil else { return }
        upstream.trustProblem = nil
        log.info("the upstream \(public: upstream.name) is trusted again")
    }
}
