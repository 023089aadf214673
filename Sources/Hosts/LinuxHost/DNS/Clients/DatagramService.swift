internal import ByteAccess
internal import DNSProxy
internal import IPPacket
internal import Provider
internal import WireGuard

/// What a thread reads queries and sends answers by UDP with. A batch locks the proxy once, and its immediate answers leave with one
/// call; nothing is allocated for them.
struct DatagramService: ~Copyable {
    /// How many batches one turn reads from a socket before others have theirs.
    private static let batchesPerTurn = 4

    /// What became of the datagrams.
    private(set) var counts = DatagramCounts()
    /// True when a query waits that was put to the proxy since this was last false.
    var hasPending = false
    private var queries = QueryBatch()
    private var answers = AnswerBatch()
    /// The socket that the answers that wait leave by.
    private var outgoing: DatagramSocket?
    private let passedByAddress = PassedByAddress()

    /// Nothing read, nothing to send.
    init() {}

    /// Reads the queries that wait at a socket, and sends those answers that there are at once.
    mutating func serve(_ socket: DatagramSocket, _ shared: SharedProxy) {
        flush()
        for _ in 0..<Self.batchesPerTurn {
            queries.receive(from: socket.descriptor)
            if queries.count == 0 { return }
            counts.received &+= UInt64(queries.count)
            let now = HostClock.now()
            shared.lock()
            for index in 0..<queries.count { handle(index, of: socket, shared, at: now) }
            // An answer from the cache may lead to a question as well.
            if shared.proxy.hasActions { hasPending = true }
            shared.unlock()
            answers.flush(to: socket.descriptor, &counts)
            if queries.count < QueryBatch.capacity { return }
        }
    }

    /// Puts one query to the proxy, which is locked.
    @inline(__always)
    private mutating func handle(_ index: Int, of socket: DatagramSocket, _ shared: SharedProxy, at now: Instant) {
        guard queries.hasClient(at: index) else { return }
        // Usual answers all fit. Where they do not, they leave while the proxy is locked, which is rare and short.
        if !answers.hasRoom { answers.flush(to: socket.descriptor, &counts) }
        let token = shared.datagramClients.nextToken
        switch Self.ask(index, of: queries, token, &answers, shared, at: now) {
        case .answer(let byteCount):
            if socket.isWildcard, let client = queries.client(at: index) {
                answers.append(byteCount: byteCount, to: client, from: queries.localSource(at: index))
            } else {
                Self.add(byteCount, to: index, of: queries, &answers)
            }
        case .pending:
            hasPending = true
            keep(index, of: socket, shared)
        case .drop:
            break
        }
    }

    /// Has the answer to a query wait, which leaves by a socket that has an address of its own.
    @inline(__always)
    private static func add(
        _ byteCount: Int, to index: Int, of queries: borrowing QueryBatch, _ answers: inout AnswerBatch
    ) {
        answers.append(byteCount: byteCount, to: queries.address(at: index))
    }

    /// Keeps who waits for the answer to a query.
    private func keep(_ index: Int, of socket: DatagramSocket, _ shared: SharedProxy) {
        guard let client = queries.client(at: index) else { preconditionFailure("a query that came from nowhere") }
        var server = Endpoint(address: socket.address.address, port: socket.address.port)
        if socket.isWildcard, let source = queries.localSource(at: index) {
            server.address = source.address
            server.scope = source.address.isLinkLocal ? source.interfaceIndex : 0
        }
        shared.datagramClients.add(DatagramClient(origin: .socket(socket.number), client: client, server: server))
    }

    @inline(__always)
    private static func ask(
        _ index: Int, of queries: borrowing QueryBatch, _ token: ClientToken, _ answers: inout AnswerBatch,
        _ shared: SharedProxy, at now: Instant
    ) -> Decision {
        var output = answers.unusedBytes()
        let query = queries.bytes(at: index)
        let decision = shared.proxy.handle(query: query, from: token, by: .udp, at: now, into: &output)
        if shared.queryLog.isOn {
            let client = shared.queryLog.keepsClients ? queries.client(at: index)?.address : nil
            shared.note(decision, on: query, output.bytes, from: client, by: .udp, at: now)
        }
        return decision
    }

    /// Has an answer wait for `flush()`, to leave by `socket`.
    mutating func add(_ answer: [UInt8], to client: DatagramClient, by socket: DatagramSocket) {
        if outgoing !== socket || !answers.hasRoom { flush() }
        outgoing = socket
        do {
            var output = answers.unusedBytes()
            output.copy(answer.span.octets, to: 0)
        }
        let server = client.server
        let source =
            socket.isWildcard && !server.address.isUnspecified
            ? LocalSource(address: server.address, interfaceIndex: server.scope) : nil
        answers.append(byteCount: answer.count, to: client.client, from: source)
    }

    /// Counts an answer that no socket is left for.
    mutating func countLost() { counts.failed &+= 1 }

    /// Sends the answers that wait.
    mutating func flush() {
        guard let outgoing else { return }
        answers.flush(to: outgoing.descriptor, &counts)
        self.outgoing = nil
    }
}
