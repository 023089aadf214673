internal import ByteAccess
internal import DNSProxy
internal import EncryptedDNS
internal import IPPacket
internal import Provider

/// Puts queries to servers by UDP, TCP, TLS and HTTPS, and tells their client what comes of them: each exchange ends exactly once.
///
/// One thread at a time uses it, with the event loop that its sockets are registered with. After each call the client may have more
/// to do; at the end of a turn, ``flush(_:)`` writes what is to be sent, and ``nextDeadline`` is right behind that.
///
/// What it refers to is reached through it alone, so that it can be handed to another thread as a whole.
struct ServerExchanges<Client: ExchangeClient>: ~Copyable, @unchecked Sendable {
    /// The tokens that its descriptors have in the event loop.
    static var tokens: Range<UInt64> { 1 << 33..<1 << 34 }
    /// The most datagrams whose answers are waited for at one time: each has a socket.
    static var datagramLimit: Int { 512 }

    let client: Client
    let log: Log
    let ports: OwnPorts
    let bootstrap: [AddressAndPort]
    let upstreams: [ServerUpstream]
    var places = ExchangePlaces()
    var datagrams = WatchedSlots<DatagramExchange>(firstToken: Self.tokens.lowerBound)
    /// What is asked by a datagram when another one has come to its end, in the order in which it came.
    var queuedDatagrams: [Exchange] = []
    var streams = WatchedSlots<StreamSocket>(
        firstToken: Self.tokens.lowerBound + WatchedSlots<StreamSocket>.tokenCount)
    var bootstrapSockets = WatchedSlots<BootstrapQuestion>(
        firstToken: Self.tokens.lowerBound + 2 * WatchedSlots<BootstrapQuestion>.tokenCount)
    var lookups: [BootstrapLookup] = []
    /// Connections with something to be written.
    var dirty: [StreamSocket] = []
    var random = RandomWords()
    /// Room for what is read and written; taken out of here while it is used.
    var buffer: [UInt8] = []
    /// Nothing is due before this time. It may be earlier than what is due.
    var earliestDeadline: Instant?
    private let passedByAddress = PassedByAddress()

    /// The servers of a configuration, by their index. Throws when the authorities of one cannot be read.
    ///
    /// - Parameters:
    ///   - bootstrap: Resolvers that are asked for the addresses of servers that are known by name only.
    ///   - ports: Where the ports of the sockets are noted.
    init(
        _ upstreams: [DNSUpstreamConfiguration], bootstrap: [AddressAndPort], client: Client,
        ports: OwnPorts = OwnPorts(), log: Log
    ) throws(ServerStartError) {
        var all: [ServerUpstream] = []
        for upstream in upstreams { all.append(try ServerUpstream(upstream)) }
        self.upstreams = all
        self.bootstrap = bootstrap
        self.client = client
        self.ports = ports
        self.log = log
    }

    /// Puts a query to a server.
    mutating func begin(_ exchange: Exchange, at now: Instant, _ loop: borrowing EventLoop) {
        let upstream = upstreams[exchange.upstream.index]
        noteDeadline(exchange.deadline)
        if exchange.transport == .udp {
            beginDatagram(exchange, upstream, at: now, loop)
        } else {
            place(WaitingExchange(exchange: exchange), upstream, at: now, loop)
        }
        settle(at: now, loop)
    }

    /// Nobody waits for this exchange any more.
    mutating func cancel(_ id: ExchangeID, at now: Instant, _ loop: borrowing EventLoop) {
        switch places.remove(id) {
        case .datagram(let token):
            if let datagram = datagrams.remove(token) { avoidAddress(of: datagram) }
        case .stream(let socket, let begin, let patience):
            socket.connection?.cancel(id, at: now)
            doubt(socket, since: begin, patience, at: now)
            takeEvents(of: socket, at: now, loop)
        case .waiting(let upstream):
            upstream.waiting.removeAll { $0.exchange.id == id }
            upstream.waitingDatagrams.removeAll { $0.id == id }
        case .queued: queuedDatagrams.removeAll { $0.id == id }
        case nil: break
        }
        settle(at: now, loop)
    }

    /// The network is another one: no connection is used any more, and names are resolved anew.
    mutating func resetConnections(at now: Instant, _ loop: borrowing EventLoop) {
        for upstream in upstreams {
            upstream.addressesExpire = upstream.addressesExpire.map { min($0, now) }
            upstream.resolutionRetry = nil
            upstream.datagramAddress = 0
            perform(upstream.connections.pathChanged(at: now), upstream, at: now, loop)
            upstream.needsReview = true
        }
        settle(at: now, loop)
    }

    /// Ends everything. What is under way is told to nobody.
    mutating func close(_ loop: borrowing EventLoop) {
        places.removeAll()
        for socket in streams.elements {
            socket.connection?.abandon()
            _ = withBuffer { socket.flush(by: &$0) }
            socket.upstream.sockets.removeAll { $0 === socket }
            streams.remove(socket.token)
        }
        for datagram in datagrams.elements { datagrams.remove(datagram.token) }
        for lookup in lookups { end(lookup) }
        queuedDatagrams.removeAll()
        dirty.removeAll()
        for upstream in upstreams {
            upstream.waiting.removeAll()
            upstream.waitingDatagrams.removeAll()
        }
        earliestDeadline = nil
    }

    /// When ``handleDeadlines(at:_:)`` is to be called if nothing happens before; nil for never.
    var nextDeadline: Instant? { earliestDeadline }

    /// Something is due at this time.
    mutating func noteDeadline(_ deadline: Instant?) {
        guard let deadline else { return }
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
    }

    /// Tells the client that an exchange came to nothing, unless it has ended already.
    mutating func fail(_ id: ExchangeID, _ failure: ExchangeFailure, at now: Instant) {
        places.remove(id)
        client.failed(id, failure, at: now)
    }

    /// Lends the buffer. A span of what is stored would lock all of this value.
    mutating func withBuffer<Result>(_ body: (inout [UInt8]) -> Result) -> Result {
        var taken: [UInt8] = []
        swap(&taken, &buffer)
        if taken.isEmpty { taken = [UInt8](repeating: 0, count: 65_536) }
        defer { buffer = taken }
        return body(&taken)
    }

    /// Gives those that wait a place, as long as something has changed for them.
    mutating func settle(at now: Instant, _ loop: borrowing EventLoop) {
        while let upstream = upstreams.first(where: \.needsReview) {
            upstream.needsReview = false
            let waiting = upstream.waiting
            upstream.waiting = []
            for exchange in waiting { place(exchange, upstream, at: now, loop) }
        }
    }
}
