internal import ByteAccess
internal import DNSProxy
internal import Glibc
internal import Provider

extension ServerExchanges {
    /// Asks by a datagram from a socket of its own.
    ///
    /// - Parameter triedCount: How many of the server's addresses this exchange has tried already.
    mutating func beginDatagram(
        _ exchange: Exchange, _ upstream: ServerUpstream, triedCount: Int = 0, at now: Instant,
        _ loop: borrowing EventLoop
    ) {
        if let expiry = upstream.addressesExpire, expiry <= now { resolveAgain(upstream, at: now, loop) }
        guard !upstream.addresses.isEmpty else { return waitForAddress(exchange, upstream, at: now, loop) }
        guard datagrams.count < Self.datagramLimit else { return queueDatagram(exchange) }
        var problem: SystemCallError?
        for attempt in triedCount..<max(triedCount + 1, upstream.addresses.count) {
            let index = upstream.datagramAddress % upstream.addresses.count
            do throws(SystemCallError) {
                try send(exchange, upstream, index, attempt, at: now, loop)
                return
            } catch {
                problem = error
                // What is under way will make room.
                if error.meansNoRoom, datagrams.count > 0 { return queueDatagram(exchange) }
                if error.meansNoRoom { break }
                upstream.datagramAddress = index + 1
            }
        }
        if let problem { upstream.lastProblem = .system(problem) }
        fail(exchange.id, problem?.meansNoRoom ?? false ? .overloaded : .unreachable, at: now)
    }

    /// Keeps an exchange until there is room for its datagram. The proxy bounds how many there are.
    private mutating func queueDatagram(_ exchange: Exchange) {
        queuedDatagrams.append(exchange)
        places.set(.queued, for: exchange.id)
    }

    /// Asks what waited for room, as far as there is some.
    mutating func beginQueuedDatagrams(_ loop: borrowing EventLoop) {
        let count = min(Self.datagramLimit - datagrams.count, queuedDatagrams.count)
        guard count > 0 else { return }
        let now = HostClock.now()
        let next = Array(queuedDatagrams.prefix(count))
        queuedDatagrams.removeFirst(count)
        for exchange in next {
            places.remove(exchange.id)
            beginDatagram(exchange, upstreams[exchange.upstream.index], at: now, loop)
        }
    }

    /// Ends what waited for room for too long.
    mutating func expireQueuedDatagrams(at now: Instant) {
        let late = queuedDatagrams.filter { $0.deadline <= now }
        guard !late.isEmpty else { return }
        queuedDatagrams.removeAll { $0.deadline <= now }
        for exchange in late { fail(exchange.id, .timedOut, at: now) }
    }

    private mutating func send(
        _ exchange: Exchange, _ upstream: ServerUpstream, _ index: Int, _ triedCount: Int, at now: Instant,
        _ loop: borrowing EventLoop
    ) throws(SystemCallError) {
        let server = AddressAndPort(address: upstream.addresses[index], port: upstream.configuration.port)
        let socket = try ServerSocket.datagram(to: server, ports: ports, random: &random)
        let datagram = DatagramExchange(exchange, socket, upstream, addressIndex: index, triedCount: triedCount)
        guard let count = writeQuery(of: exchange, at: now) else { return }
        try datagram.send(buffer.span.octets.extracting(..<count))
        datagram.token = datagrams.add(datagram)
        do throws(SystemCallError) {
            try datagram.register(loop)
        } catch {
            datagrams.remove(datagram.token)
            throw error
        }
        places.set(.datagram(datagram.token), for: exchange.id)
    }

    /// Writes the query of an exchange to the start of the buffer; returns its length, nil when the exchange is over.
    mutating func writeQuery(of exchange: Exchange, at now: Instant) -> Int? {
        // Nobody can write into an encrypted connection: there is nothing to be guessed.
        var entropy = QueryEntropy(id: 0, letters: InlineArray(repeating: 0))
        if !exchange.transport.isEncrypted {
            entropy.id = random.nextUInt16()
            for index in entropy.letters.indices { entropy.letters[index] = random.next() }
        }
        let client = client
        return withBuffer { buffer in
            var span = buffer.mutableSpan
            var octets = span.mutableOctets
            return client.writeQuery(of: exchange.id, entropy: entropy, into: &octets)
        }
    }

    /// Keeps an exchange until a resolver has said where the server is.
    private mutating func waitForAddress(
        _ exchange: Exchange, _ upstream: ServerUpstream, at now: Instant, _ loop: borrowing EventLoop
    ) {
        guard upstream.bootstrapName != nil, upstream.resolutionRetry.map({ $0 <= now }) ?? true else {
            return fail(exchange.id, .noAddress, at: now)
        }
        guard upstream.waitingDatagrams.count < ServerUpstream.waitingLimit else {
            return fail(exchange.id, .overloaded, at: now)
        }
        upstream.waitingDatagrams.append(exchange)
        places.set(.waiting(upstream), for: exchange.id)
        startLookup(upstream, at: now, loop)
    }

    /// Asks for the server's addresses anew, unless that was done a moment ago.
    private mutating func resolveAgain(_ upstream: ServerUpstream, at now: Instant, _ loop: borrowing EventLoop) {
        guard upstream.bootstrapName != nil, upstream.resolutionRetry.map({ $0 <= now }) ?? true else { return }
        startLookup(upstream, at: now, loop)
    }

    /// The socket of a datagram has something.
    mutating func handleDatagram(_ datagram: DatagramExchange, at now: Instant, _ loop: borrowing EventLoop) {
        let client = client
        let id = datagram.exchange.id
        while true {
            let result = withBuffer { buffer -> Result<ExchangeDisposition?, SystemCallError> in
                do throws(SystemCallError) {
                    guard let count = try datagram.receive(into: &buffer) else { return .success(nil) }
                    return .success(
                        client.received(
                            buffer.span.octets.extracting(..<count), for: id, freshness: AnswerFreshness(), at: now))
                } catch {
                    return .failure(error)
                }
            }
            switch result {
            case .success(nil): return
            case .success(.keepWaiting): continue
            case .success(.finished):
                end(datagram)
                return
            case .failure(let error):
                // What an ICMP message says about the size of packets concerns no query.
                if error.errno == EMSGSIZE { continue }
                end(datagram)
                avoidAddress(of: datagram)
                datagram.upstream.lastProblem = .system(error)
                resolveAgain(datagram.upstream, at: now, loop)
                if datagram.triedCount + 1 < datagram.upstream.addresses.count {
                    beginDatagram(
                        datagram.exchange, datagram.upstream, triedCount: datagram.triedCount + 1, at: now, loop)
                } else {
                    fail(id, .unreachable, at: now)
                }
                return
            }
        }
    }

    /// Forgets a datagram whose exchange is over.
    mutating func end(_ datagram: DatagramExchange) {
        datagrams.remove(datagram.token)
        places.remove(datagram.exchange.id)
    }

    /// Sends the next datagrams to another address, when this one had no answer.
    mutating func avoidAddress(of datagram: DatagramExchange) {
        let upstream = datagram.upstream
        if upstream.datagramAddress == datagram.addressIndex, upstream.addresses.count > 1 {
            upstream.datagramAddress = (datagram.addressIndex + 1) % upstream.addresses.count
        }
    }

    /// Ends the datagrams whose time is over.
    mutating func expireDatagrams(at now: Instant) {
        for datagram in datagrams.elements where datagram.exchange.deadline <= now {
            end(datagram)
            avoidAddress(of: datagram)
            fail(datagram.exchange.id, .timedOut, at: now)
        }
    }
}
