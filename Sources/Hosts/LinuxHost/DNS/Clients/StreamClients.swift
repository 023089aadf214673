internal import DNSProxy
internal import Glibc
internal import IPPacket
internal import Provider
internal import SecureStream

/// The clients that are connected by TCP. All belongs to the proxy's own thread.
///
/// There are bounds to what they take: how many there are, how many from one address, how many shake hands by TLS, how long they may be
/// idle, how many queries and answers of one may wait, and how much memory all may hold.
struct StreamClients: ~Copyable {
    /// How many clients there may be.
    static let maximumCount = 256
    /// How many there may be from one address that is not the machine's own.
    static let maximumPerAddress = 64
    /// How many bytes queries that wait to be read whole and unsent answers of all clients may take.
    static let maximumHeldByteCount = 2_097_152
    /// How many steps of handshakes are taken in one turn: each takes from 0.1 ms up to 5 ms, by the key, and a turn next to nothing.
    static let handshakeStepsPerTurn = 1
    /// How many bytes one read takes.
    static let pieceCapacity = 16_384

    /// How long a client may be idle: from its last whole query or answer on.
    var idle: Interval
    /// How many may shake hands by TLS.
    var handshakeLimits = HandshakeLimits()
    /// What became of clients.
    var counts = StreamCounts()
    /// What became of those of them that come by TLS.
    var secureCounts = SecureCounts()
    let shared: SharedProxy
    /// What is read.
    var input = ZeroedBuffer(byteCount: Self.pieceCapacity)
    /// What is decrypted.
    var plaintext = ZeroedBuffer(byteCount: Self.plaintextCapacity)
    /// What answers leave through.
    var output = StreamOutput()

    /// How many steps of handshakes that cost a signature or the like may still be taken before everything else has its turn.
    private(set) var handshakeSteps = Self.handshakeStepsPerTurn
    /// True when a client that shakes hands was left for this turn by the one before: others are not accepted to do the same.
    private(set) var isBehind = false
    private var leavesHandshakes = false
    private(set) var slots: [StreamClient?] = Array(repeating: nil, count: Self.maximumCount)
    private var generations = [UInt32](repeating: 0, count: Self.maximumCount)
    /// No client is due before; nil when there is none that could be.
    private var earliest: Instant?

    /// No clients yet.
    init(shared: SharedProxy, idle: Interval) {
        self.shared = shared
        self.idle = idle
    }

    /// The client in a place, when it still is the one meant.
    func client(_ slot: Int, _ generation: UInt32) -> StreamClient? {
        guard slots.indices.contains(slot), let client = slots[slot], client.generation == generation else {
            return nil
        }
        return client
    }

    // MARK: Coming

    /// Takes a client that was accepted, or turns it away by closing the connection.
    ///
    /// - Parameter service: What is spoken by TLS; nil for plain TCP.
    mutating func add(
        _ descriptor: consuming FileDescriptor, from address: IPAddress, by service: SecureService? = nil,
        at now: Instant, _ loop: borrowing EventLoop
    ) {
        if service != nil { makeHandshakeRoom(for: address, loop) }
        guard makeRoom(for: address, loop), let slot = slots.firstIndex(where: { $0 == nil }) else {
            counts.refused &+= 1
            return
        }
        let channel: SecureChannel?
        do throws(TLSError) { channel = try service?.makeChannel(at: now) } catch {
            counts.refused &+= 1
            return
        }
        // What is written is whole answers: nothing is won by waiting. An old kernel's refusal changes nothing but that.
        try? descriptor.set(.undelayed, to: 1)
        let client = StreamClient(
            descriptor, slot: slot, generation: generations[slot], address: address, channel: channel, at: now)
        guard (try? loop.register(client.descriptor, token: client.eventToken, interest: .readable)) != nil else {
            counts.refused &+= 1
            return
        }
        slots[slot] = client
        counts.connected += 1
        counts.accepted &+= 1
        noteDeadline(of: client)
    }

    /// Notes that a step of a handshake was taken.
    mutating func noteHandshakeStep() { handshakeSteps -= 1 }

    /// True when a client that shakes hands has to be left for the next turn. That is noted.
    mutating func leavesHandshake(of client: StreamClient) -> Bool {
        guard client.isShakingHands, handshakeSteps <= 0 else { return false }
        leavesHandshakes = true
        return true
    }

    /// Begins another turn: everything else that was ready has been served.
    mutating func beginTurn() {
        handshakeSteps = Self.handshakeStepsPerTurn
        isBehind = leavesHandshakes
        leavesHandshakes = false
    }

    /// Notes that a client was turned away.
    mutating func countRefused() { counts.refused &+= 1 }

    /// Closes the idlest client of an address, or of all, when there is no room for one more. False when all are busy.
    private mutating func makeRoom(for address: IPAddress, _ loop: borrowing EventLoop) -> Bool {
        if !address.isLoopback {
            let ofAddress = slots.reduce(0) { $0 + ($1?.address == address ? 1 : 0) }
            if ofAddress >= Self.maximumPerAddress { return displaceIdlest(loop) { $0.address == address } }
        }
        if counts.connected >= Self.maximumCount { return displaceIdlest(loop) { _ in true } }
        return true
    }

    /// Closes the idlest client, to get its descriptor or its place. False when all are busy.
    mutating func displaceIdlest(_ loop: borrowing EventLoop, where isMeant: (StreamClient) -> Bool) -> Bool {
        var idlest: StreamClient?
        for case let client? in slots where client.pending.isEmpty && isMeant(client) {
            if let found = idlest, found.lastActivity <= client.lastActivity { continue }
            idlest = client
        }
        guard let idlest else { return false }
        counts.displaced &+= 1
        remove(idlest, loop)
        return true
    }

    // MARK: Going

    /// Closes a client's connection. The proxy is told of its queries that wait; nobody may hold the proxy.
    mutating func remove(_ client: StreamClient, _ loop: borrowing EventLoop) {
        if let channel = client.channel { output.sendEnd(of: channel, to: client) }
        // It was registered.
        try? loop.unregister(client.descriptor)
        slots[client.slot] = nil
        generations[client.slot] = (generations[client.slot] &+ 1) & ClientSideToken.generationMask
        counts.connected -= 1
        if client.pending.isEmpty { return }
        counts.left &+= 1
        shared.withProxy { proxy in
            for number in client.pending {
                proxy.clientLeft(
                    StreamQuery(slot: client.slot, generation: client.generation, number: number).token)
            }
        }
        client.pending = []
    }

    /// Closes all connections.
    mutating func removeAll(_ loop: borrowing EventLoop) {
        for case let client? in slots { remove(client, loop) }
        earliest = nil
    }

    /// Closes the clients that hold most, until all together hold no more than they may.
    mutating func boundMemory(_ loop: borrowing EventLoop) {
        while heldByteCount > Self.maximumHeldByteCount {
            var largest: StreamClient?
            for case let client? in slots where client.heldByteCount > largest?.heldByteCount ?? 0 { largest = client }
            guard let largest else { return }
            counts.overfull &+= 1
            remove(largest, loop)
        }
    }

    /// How many bytes are kept for all clients: queries of which a part came, queries that may not be looked at yet, unsent answers.
    var heldByteCount: Int { slots.reduce(0) { $0 + ($1?.heldByteCount ?? 0) } }

    // MARK: Deadlines

    /// When `handleDeadlines` is to be called; nil for never. It may be earlier than something is due, never later.
    var nextDeadline: Instant? { counts.connected == 0 ? nil : earliest }

    /// Closes the clients that were idle for too long. One whose query waits is not: it gets its answer.
    mutating func handleDeadlines(at now: Instant, _ loop: borrowing EventLoop) {
        guard let due = earliest, due <= now else { return }
        earliest = nil
        for case let client? in slots where client.pending.isEmpty {
            if client.lastActivity + idle <= now {
                counts.timedOut &+= 1
                remove(client, loop)
            } else {
                noteDeadline(of: client)
            }
        }
    }

    /// Notes when a client is due. That only moves away, so that the earliest that ever was is early enough.
    mutating func noteDeadline(of client: StreamClient) {
        let deadline = client.lastActivity + idle
        if earliest.map({ deadline < $0 }) ?? true { earliest = deadline }
    }

    /// Follows another configuration.
    mutating func setIdle(_ idle: Interval) {
        self.idle = idle
        for case let client? in slots { noteDeadline(of: client) }
    }
}
