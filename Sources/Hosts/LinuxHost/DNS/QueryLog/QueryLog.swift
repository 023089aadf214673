internal import ByteAccess
internal import DNSMessage
internal import DNSProxy
internal import IPPacket
internal import Provider

/// How the last queries were answered: a ring in memory that is allocated when the log is begun, and not more later. It belongs to who
/// holds the proxy; who only reads gets a copy.
///
/// What the configuration does not want shown is not kept: with `private` there is neither a name nor a client in memory.
struct QueryLog: ~Copyable, Sendable {
    /// How many queries it keeps at most.
    static let capacity = 512
    /// How many bytes the names may take, a power of two. Where names are long, there are fewer queries.
    static let nameCapacity = 65_536

    /// What is kept.
    private(set) var detail = DNSConfiguration.QueryLog.off
    /// How many queries were noted so far: the number of the next one.
    private(set) var end: UInt64 = 0
    /// The number of the oldest that is kept.
    private(set) var start: UInt64 = 0
    private var entries: [QueryLogEntry] = []
    private var names: [UInt8] = []
    /// How many bytes of names there were so far.
    private var nameEnd: UInt64 = 0

    /// A log that is off.
    init() {}

    /// True when queries are to be noted.
    @inline(__always)
    var isOn: Bool { detail != .off }

    /// True when it is kept who asked.
    @inline(__always)
    var keepsClients: Bool { detail == .full }

    /// How many bytes are allocated.
    var byteCount: Int { entries.count * MemoryLayout<QueryLogEntry>.stride + names.count }

    /// Begins or ends the log, or has it keep more or less. What was kept another way is forgotten.
    mutating func set(_ detail: DNSConfiguration.QueryLog) {
        guard detail != self.detail else { return }
        self.detail = detail
        start = end
        entries = detail == .off ? [] : Array(repeating: QueryLogEntry(), count: Self.capacity)
        names = detail == .full ? Array(repeating: 0, count: Self.nameCapacity) : []
    }

    /// Forgets which servers answered: their numbers stand for others now.
    mutating func forgetUpstreams() {
        for index in entries.indices { entries[index].upstream = nil }
    }

    /// Notes a query that was answered.
    ///
    /// - Parameters:
    ///   - query: The query, whose question is read for type and name. One that has none that can be read has neither.
    ///   - entry: All but that.
    mutating func note(_ query: RawSpan, _ entry: QueryLogEntry) {
        guard isOn else { return }
        var entry = entry
        var name = query.extracting(first: 0)
        if let question = Self.question(in: query) {
            entry.type = question.type
            if detail == .full { name = query.extracting(question.name) }
        }
        if !keepsClients { entry.client = nil }
        entry.nameStart = nameEnd
        entry.nameLength = UInt16(truncatingIfNeeded: name.byteCount)
        makeRoom(for: name.byteCount)
        for offset in name.byteOffsets {
            names[Int(truncatingIfNeeded: nameEnd) & (Self.nameCapacity - 1)] = name.uint8(at: offset)
            nameEnd &+= 1
        }
        entries[Int(truncatingIfNeeded: end) & (Self.capacity - 1)] = entry
        end &+= 1
    }

    private mutating func makeRoom(for length: Int) {
        if end - start == UInt64(Self.capacity) { start &+= 1 }
        guard length > 0 else { return }
        while start < end, nameEnd + UInt64(length) - entry(start).nameStart > UInt64(Self.nameCapacity) { start &+= 1 }
    }

    private func entry(_ number: UInt64) -> QueryLogEntry {
        entries[Int(truncatingIfNeeded: number) & (Self.capacity - 1)]
    }

    /// The queries from a number on, `limit` at most.
    ///
    /// - Parameter number: The first that is wanted; nil for the oldest that there is, and so is a number that there was none of yet.
    func excerpt(from number: UInt64?, limit: Int) -> QueryLogExcerpt {
        let wanted = number.map { $0 > end ? start : $0 } ?? start
        let first = max(wanted, start)
        let last = min(end, first + UInt64(limit))
        var excerpt = QueryLogExcerpt(detail: detail, lostCount: first - wanted, next: last, hasMore: last < end)
        for number in first..<last {
            let entry = entry(number)
            excerpt.queries.append((entry, name(of: entry)))
        }
        return excerpt
    }

    private func name(of entry: QueryLogEntry) -> [UInt8] {
        (0..<UInt64(entry.nameLength)).map {
            names[Int(truncatingIfNeeded: entry.nameStart &+ $0) & (Self.nameCapacity - 1)]
        }
    }

    /// Where the name of a message's question is, and its type; nil when they cannot be read.
    private static func question(in message: RawSpan) -> (name: Range<Int>, type: RecordType)? {
        var offset = DNSHeader.byteCount
        while offset < message.byteCount, offset < DNSHeader.byteCount + 255 {
            let length = Int(message.uint8(at: offset))
            guard length < 64 else { return nil }
            offset += 1 + length
            guard length == 0 else { continue }
            guard offset + 2 <= message.byteCount else { return nil }
            return (DNSHeader.byteCount..<offset, RecordType(rawValue: message.bigEndianUInt16(at: offset)))
        }
        return nil
    }
}

/// How one query was answered. It has no reference in it: noting one counts and allocates nothing.
struct QueryLogEntry: Sendable {
    /// When it was answered.
    var answeredAt = Instant(nanoseconds: 0)
    /// How long that took; zero for what is answered at once.
    var taken = Interval(nanoseconds: 0)
    /// Who asked; nil when that is not kept.
    var client: IPAddress?
    /// The type that was asked for; nil when it could not be read.
    var type: RecordType?
    /// How it came.
    var transport = ClientTransport.udp
    /// True when it came out of the TUN device.
    var isTunnelled = false
    /// What became of it.
    var result = QueryResult.refused
    /// The code of the answer.
    var code = ResponseCode.noError
    /// The server that answered, or that was asked last in vain.
    var upstream: UpstreamID?
    /// Why servers were asked in vain.
    var error: ExtendedErrorCode?
    /// What the rule is from that blocked it; nil where none did.
    var ruleSource: RuleSource?
    /// True when the same question was under way already.
    var isMerged = false
    fileprivate var nameStart: UInt64 = 0
    fileprivate var nameLength: UInt16 = 0
}

/// A part of the log, copied out of it.
struct QueryLogExcerpt: Sendable {
    /// What is kept.
    var detail: DNSConfiguration.QueryLog
    /// How many that were wanted are gone.
    var lostCount: UInt64
    /// The number of the query behind the last one.
    var next: UInt64
    /// True when there are more already.
    var hasMore: Bool
    /// The queries, with the names on the wire that they asked for; empty where that is not kept.
    var queries: [(entry: QueryLogEntry, name: [UInt8])] = []
    /// What the configuration calls the servers, by their numbers.
    var upstreamNames: [String] = []
    /// What sources of rules are called, by their numbers.
    var ruleSourceNames: [String] = []
}
