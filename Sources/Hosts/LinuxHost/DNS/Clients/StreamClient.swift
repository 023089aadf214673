internal import DNSMessage
internal import DNSProxy
internal import IPPacket
internal import Provider

/// A client that is connected by TCP, by itself or with TLS on it: what it sent and what it is to get. While nothing waits it holds no memory but itself.
///
/// ```
///            ┌─────────── reads ◀──────────┐
///   queries  │                             │ below both limits again
///            └─▶ too many wait, or ────────┘
///                too many answers unsent
///
///   end of its stream, or no message's length ─▶ reads no more ─▶ nothing waits ─▶ closed
/// ```
final class StreamClient {
    /// How many queries of one client may wait before no more are read.
    static let maximumPending = 128
    /// How many bytes of answers one client may leave unread before no more of its queries are read.
    static let maximumUnsent = 262_144

    /// The connection.
    let descriptor: FileDescriptor
    /// Its place in the table.
    let slot: Int
    /// Which of those that had the place it is.
    let generation: UInt32
    /// Who it is.
    let address: IPAddress
    /// The encryption between the connection and the queries; nil without.
    let channel: SecureChannel?

    /// Cuts its stream into queries.
    var reader = FramedMessageReader()
    /// What a query that came in pieces is put together in; empty while there is none.
    var partial: [UInt8] = []
    /// What was read and not looked at, because too much waits.
    var held: [UInt8] = []
    /// Answers with their lengths, or what encryption made of them, of which the first `sentCount` bytes have left.
    var unsent: [UInt8] = []
    /// How many bytes of `unsent` have left.
    var sentCount = 0
    /// The numbers of the queries that wait.
    var pending: [UInt32] = []
    /// The number of the last query.
    var lastNumber: UInt32 = 0
    /// When it last sent a whole query or took an answer.
    var lastActivity: Instant
    /// What its descriptor is watched for.
    var interest: EventInterest = .readable
    /// True when it sends no more, or nothing that can be understood.
    var hasEnded = false
    /// True when nothing can be sent to it any more.
    var isBroken = false

    /// A client that was just accepted.
    init(
        _ descriptor: consuming FileDescriptor, slot: Int, generation: UInt32, address: IPAddress,
        channel: SecureChannel? = nil, at now: Instant
    ) {
        self.descriptor = descriptor
        self.slot = slot
        self.generation = generation
        self.address = address
        self.channel = channel
        lastActivity = now
    }

    /// What events of its descriptor carry.
    var eventToken: UInt64 { ClientSideToken.connection(slot: slot, generation: generation).rawValue }

    /// True for a client by TLS until it has shaken hands.
    var isShakingHands: Bool { channel.map { !$0.isOpen } ?? false }

    /// How many bytes of answers have not left.
    var unsentCount: Int { unsent.count - sentCount }

    /// How many bytes are kept for it.
    var heldByteCount: Int { partial.count + held.count + unsent.count + (channel?.heldByteCount ?? 0) }

    /// True when another query may be looked at.
    var takesQueries: Bool {
        !hasEnded && !isBroken && pending.count < Self.maximumPending && unsentCount < Self.maximumUnsent
    }

    /// True when neither a query nor an answer of it waits.
    var isIdle: Bool { pending.isEmpty && unsentCount == 0 }

    /// True when there is nothing left to do for it.
    var isOver: Bool { isBroken || hasEnded && isIdle }

    /// What its descriptor is to be watched for.
    var wantedInterest: EventInterest {
        var wanted: EventInterest = []
        if takesQueries, held.isEmpty { wanted.insert(.readable) }
        if unsentCount > 0 { wanted.insert(.writable) }
        return wanted
    }

    /// A name for its next query, which no query of it that waits has.
    func nextQuery() -> StreamQuery {
        repeat { lastNumber = (lastNumber &+ 1) & StreamQuery.numberMask } while pending.contains(lastNumber)
        return StreamQuery(slot: slot, generation: generation, number: lastNumber)
    }

    /// Notes that a query is answered. False when it did not wait.
    func remove(_ query: StreamQuery) -> Bool {
        guard let index = pending.firstIndex(of: query.number) else { return false }
        pending.swapAt(index, pending.count - 1)
        pending.removeLast()
        return true
    }
}
