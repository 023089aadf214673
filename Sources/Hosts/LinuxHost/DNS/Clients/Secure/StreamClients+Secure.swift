internal import ByteAccess
internal import DNSProxy
internal import EncryptedDNS
internal import Provider
internal import SecureStream

extension StreamClients {
    /// Room for all that one piece of ciphertext can make whole: itself, and what came before of a record (RFC 8446 §5.2).
    static let plaintextCapacity = pieceCapacity + 16_384 + 1_024

    /// Takes `count` bytes of ciphertext at the start of `input` from a client.
    mutating func take(ciphertext count: Int, from client: StreamClient, _ channel: SecureChannel, at now: Instant) {
        let wasOpen = channel.isOpen
        let byteCount: Int
        do throws(SecureChannelError) {
            byteCount = try Self.decrypt(count, of: input, into: &plaintext, channel)
        } catch {
            // An alert may say why.
            output.sendCiphertext(of: channel, to: client)
            if !wasOpen { secureCounts.noteFailedHandshake(error) }
            client.isBroken = true
            return
        }
        // Where there was something to say, there was something to compute.
        if !wasOpen, channel.isOpen || channel.stream.outgoingCount > 0 { noteHandshakeStep() }
        if channel.isOpen, !wasOpen { secureCounts.noteHandshake(channel) }
        output.sendCiphertext(of: channel, to: client)
        if byteCount > 0 {
            if let requests = channel.requests {
                take(requests: byteCount, requests, from: client, channel, at: now)
            } else if !Self.take(byteCount, of: plaintext, from: client, shared, &output, at: now) {
                counts.malformed &+= 1
            }
        }
    }

    private static func decrypt(
        _ count: Int, of input: borrowing ZeroedBuffer, into plaintext: inout ZeroedBuffer, _ channel: SecureChannel
    ) throws(SecureChannelError) -> Int {
        var room = plaintext.mutableBytes()
        return try channel.receive(input.bytes.extracting(..<count), into: &room)
    }

    // MARK: HTTP

    /// Takes `count` bytes of HTTP at the start of `plaintext`.
    private mutating func take(
        requests count: Int, _ requests: RequestStreams, from client: StreamClient, _ channel: SecureChannel,
        at now: Instant
    ) {
        do throws(ConnectionError) {
            try requests.session.receive(plaintext.bytes.extracting(..<count))
        } catch {
            counts.malformed &+= 1
            sendResponses(of: channel, to: client)
            client.isBroken = true
            return
        }
        let before = requests.session.counts
        while let event = requests.session.nextEvent() {
            switch event {
            case .query(let stream, let message):
                Self.ask(message, on: stream, of: requests, client, shared, &output, at: now)
            case .abandoned(let stream): abandon(stream, of: requests, client)
            }
        }
        secureCounts.add(requests.session.counts, since: before)
    }

    /// Puts a query to the proxy, which nobody may hold.
    ///
    /// - Parameter output: Where the answer is written, and not added: it leaves by HTTP.
    private static func ask(
        _ query: [UInt8], on stream: Int32, of requests: RequestStreams, _ client: StreamClient, _ shared: SharedProxy,
        _ output: inout StreamOutput, at now: Instant
    ) {
        let name = client.nextQuery()
        var room = output.answerRoom()
        shared.lock()
        let decision = shared.proxy.handle(
            query: query.span.octets, from: name.token, by: .https, at: now, into: &room)
        shared.note(decision, on: query.span.octets, room.bytes, from: client.address, by: .https, at: now)
        shared.unlock()
        switch decision {
        case .answer(let byteCount):
            client.lastActivity = now
            requests.session.answer(stream, output.written(byteCount))
        case .pending:
            client.lastActivity = now
            client.pending.append(name.number)
            requests.add(name.number, stream)
        case .drop:
            // An answer instead of a query.
            requests.session.refuse(stream, .badRequest)
        }
    }

    /// The client does not wait for the answer on a stream any more.
    private func abandon(_ stream: Int32, of requests: RequestStreams, _ client: StreamClient) {
        guard let number = requests.takeNumber(of: stream) else { return }
        let query = StreamQuery(slot: client.slot, generation: client.generation, number: number)
        guard client.remove(query) else { return }
        shared.withProxy { $0.clientLeft(query.token) }
    }

    /// Gives a client the answer to a request of it that waited.
    mutating func respond(
        _ answer: [UInt8], to query: StreamQuery, of requests: RequestStreams, _ client: StreamClient, at now: Instant
    ) {
        guard let stream = requests.takeStream(of: query.number) else { return }
        client.lastActivity = now
        requests.session.answer(stream, answer.span.octets)
    }

    /// Sends what HTTP has to say, as long as the client takes it.
    mutating func sendResponses(of channel: SecureChannel, to client: StreamClient) {
        guard let requests = channel.requests else { return }
        do throws(SecureChannelError) {
            while !client.isBroken, client.unsentCount < StreamClient.maximumUnsent {
                try channel.encryptResponses(atMost: StreamClient.maximumUnsent)
                if channel.stream.outgoingCount == 0 { break }
                output.sendCiphertext(of: channel, to: client)
            }
        } catch {
            client.isBroken = true
        }
        if requests.session.isOver { client.hasEnded = true }
    }
}

extension SecureCounts {
    /// Counts a handshake that is done.
    fileprivate mutating func noteHandshake(_ channel: SecureChannel) {
        switch channel.kind {
        case .tls: tls &+= 1
        case .https: https &+= 1
        }
        if channel.stream.isResumed { resumed &+= 1 }
    }

    /// Counts a handshake that came to nothing.
    fileprivate mutating func noteFailedHandshake(_ error: SecureChannelError) {
        switch error {
        case .handshakeTooLong: overlongHandshakes &+= 1
        case .handshake, .noHTTP2, .broken: failedHandshakes &+= 1
        }
    }

    /// Counts what became of a client's requests.
    fileprivate mutating func add(_ now: DoHServerCounts, since before: DoHServerCounts) {
        refusedRequests &+= now.refused &- before.refused
        overfullRequests &+= now.overfull &- before.overfull
    }
}

extension StreamOutput {
    /// Sends ciphertext that waits, behind what the client has not taken yet. What it does not take now is kept for it.
    mutating func sendCiphertext(of channel: SecureChannel, to client: StreamClient) {
        while channel.stream.outgoingCount > 0 {
            let count = Self.move(from: channel, to: &ciphertext)
            if count == 0 { return }
            if client.isBroken { continue }
            let sent = client.unsentCount == 0 ? Self.send(ciphertext.bytes.extracting(..<count), to: client) : 0
            if sent < count, !client.isBroken { client.keep(ciphertext.bytes.extracting(sent..<count)) }
        }
    }

    private static func move(from channel: SecureChannel, to buffer: inout ZeroedBuffer) -> Int {
        var room = buffer.mutableBytes()
        return channel.stream.nextOutgoing(into: &room)
    }

    /// Encrypts the answers that wait and sends them.
    mutating func sendEncrypted(by channel: SecureChannel, to client: StreamClient) {
        do throws(TLSError) {
            try channel.stream.write(waitingBytes)
        } catch {
            client.isBroken = true
            return
        }
        sendCiphertext(of: channel, to: client)
    }

    /// Says to a client that its connection ends, when it takes that at once.
    mutating func sendEnd(of channel: SecureChannel, to client: StreamClient) {
        guard !client.isBroken, client.unsentCount == 0 else { return }
        channel.close()
        sendCiphertext(of: channel, to: client)
    }
}
