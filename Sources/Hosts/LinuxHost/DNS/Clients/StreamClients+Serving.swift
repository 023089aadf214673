internal import ByteAccess
internal import DNSMessage
internal import DNSProxy
internal import Glibc
internal import Provider

extension StreamClients {
    /// Does what an event of a client's descriptor asks for. Nobody may hold the proxy.
    mutating func handle(_ readiness: EventReadiness, _ client: StreamClient, _ loop: borrowing EventLoop) {
        let now = HostClock.now()
        if client.interest.contains(.readable) {
            if !readiness.isDisjoint(with: [.readable, .error, .hangUp]) { read(client, at: now) }
        } else if !readiness.isDisjoint(with: [.error, .hangUp]) {
            // Only a connection that is over both ways says so to somebody who does not read.
            client.isBroken = true
        }
        if client.unsentCount > 0, readiness.contains(.writable) { StreamOutput.sendUnsent(to: client, at: now) }
        settle(client, at: now, loop)
    }

    /// Sends a client the answer to a query of it that waited. Nobody may hold the proxy.
    mutating func deliver(_ answer: [UInt8], to query: StreamQuery, at now: Instant, _ loop: borrowing EventLoop) {
        guard let client = client(query.slot, query.generation), client.remove(query) else { return }
        if let requests = client.channel?.requests {
            respond(answer, to: query, of: requests, client, at: now)
        } else {
            output.add(answer)
            output.send(to: client, at: now)
        }
        settle(client, at: now, loop)
    }

    /// Goes on with queries that were held back, as far as they may be looked at now; then watches the client for what it is to be
    /// watched for, or lets it go.
    private mutating func settle(_ client: StreamClient, at now: Instant, _ loop: borrowing EventLoop) {
        if let channel = client.channel { sendResponses(of: channel, to: client) }
        while !client.held.isEmpty, client.takesQueries {
            var held: [UInt8] = []
            swap(&held, &client.held)
            take(held.span.octets, from: client, at: now)
        }
        if client.held.isEmpty, client.channel?.hasClientEnded == true { noteEnd(of: client) }
        if client.isOver { return remove(client, loop) }
        let wanted = client.wantedInterest
        if wanted != client.interest {
            guard (try? loop.modify(client.descriptor, token: client.eventToken, interest: wanted)) != nil else {
                return remove(client, loop)
            }
            client.interest = wanted
        }
        noteDeadline(of: client)
        if client.heldByteCount > 0 { boundMemory(loop) }
    }

    /// Reads a piece of a client's stream: what more there is, is for another turn. So is all of it while handshakes took enough of
    /// this one.
    private mutating func read(_ client: StreamClient, at now: Instant) {
        if leavesHandshake(of: client) { return }
        let count = receive(client.descriptor)
        if count > 0, let channel = client.channel {
            take(ciphertext: count, from: client, channel, at: now)
        } else if count > 0 {
            if !Self.take(count, of: input, from: client, shared, &output, at: now) { counts.malformed &+= 1 }
        } else if count == 0 {
            noteEnd(of: client)
        } else if errno != EAGAIN {
            client.isBroken = true
        }
    }

    /// Notes that nothing more comes from a client. A query that is cut short is none; those before it are answered.
    func noteEnd(of client: StreamClient) {
        client.hasEnded = true
        client.partial = []
    }

    /// Looks at queries in a piece of a client's stream.
    private mutating func take(_ piece: RawSpan, from client: StreamClient, at now: Instant) {
        if !client.take(piece, shared, &output, at: now) { counts.malformed &+= 1 }
    }

    /// Looks at queries in the first bytes of `input`.
    static func take(
        _ count: Int, of input: borrowing ZeroedBuffer, from client: StreamClient, _ shared: SharedProxy,
        _ output: inout StreamOutput, at now: Instant
    ) -> Bool {
        client.take(input.bytes.extracting(..<count), shared, &output, at: now)
    }

    /// Reads from a connection to the start of `input`; returns how many bytes, or a negative number with an error number.
    private mutating func receive(_ descriptor: borrowing FileDescriptor) -> Int {
        var room = input.mutableBytes()
        while true {
            let count = unsafe room.withUnsafeMutableBytes { bytes in
                // The pointer and the length are the buffer's own.
                unsafe recv(descriptor.rawValue, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
            }
            if count >= 0 || errno != EINTR { return count }
        }
    }
}

extension StreamClient {
    /// Puts the queries in a piece of the stream to the proxy, sends those answers that there are at once, and keeps what may not be
    /// looked at yet. False when the piece has something in it that is no message's length: nothing behind that is read.
    fileprivate func take(
        _ piece: RawSpan, _ shared: SharedProxy, _ output: inout StreamOutput, at now: Instant
    ) -> Bool {
        var offset = 0
        var assembled: [UInt8] = []
        swap(&assembled, &partial)
        shared.lock()
        do throws(FramingError) {
            defer {
                shared.unlock()
                output.send(to: self, at: now)
            }
            // A full piece of short queries has answers that do not all fit: those that do leave first.
            reading: while takesQueries {
                switch try next(piece, at: &offset, &assembled) {
                case .messageInInput(let range):
                    ask(piece.extracting(range), shared, &output, at: now)
                case .messageInBuffer(let byteCount):
                    ask(assembled.span.octets.extracting(..<byteCount), shared, &output, at: now)
                    assembled = []
                case .needsBuffer(let byteCount):
                    assembled += repeatElement(0, count: byteCount - assembled.count)
                case .needsInput:
                    break reading
                }
            }
        } catch {
            hasEnded = true
            return false
        }
        swap(&assembled, &partial)
        if offset < piece.byteCount { held = [UInt8](copying: piece.extracting(offset...)) }
        return true
    }

    private func next(
        _ piece: RawSpan, at offset: inout Int, _ assembled: inout [UInt8]
    ) throws(FramingError) -> FramedMessageReader.Event {
        var span = assembled.mutableSpan
        var buffer = span.mutableOctets
        return try reader.next(piece, at: &offset, buffer: &buffer)
    }

    /// How its queries come.
    private var transport: ClientTransport { channel == nil ? .tcp : .tls }

    /// Puts a query to the proxy, which is locked.
    private func ask(_ query: RawSpan, _ shared: SharedProxy, _ output: inout StreamOutput, at now: Instant) {
        if !output.hasRoom { output.send(to: self, at: now) }
        let name = nextQuery()
        var room = output.answerRoom()
        let decision = shared.proxy.handle(query: query, from: name.token, by: transport, at: now, into: &room)
        shared.note(decision, on: query, room.bytes, from: address, by: transport, at: now)
        switch decision {
        case .answer(let byteCount):
            lastActivity = now
            output.add(byteCount: byteCount)
        case .pending:
            lastActivity = now
            pending.append(name.number)
        case .drop:
            // What is no query does not keep a connection alive.
            break
        }
    }
}

extension [UInt8] {
    /// A copy of a span.
    fileprivate init(copying span: RawSpan) {
        self.init(repeating: 0, count: span.byteCount)
        var copy = mutableSpan
        var octets = copy.mutableOctets
        octets.copy(span, to: 0)
    }
}
