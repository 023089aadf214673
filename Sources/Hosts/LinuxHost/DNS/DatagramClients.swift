internal import DNSProxy
internal import IPPacket
internal import WireGuard

/// Where the answer to a datagram goes.
struct DatagramClient: Sendable {
    /// What the query came through.
    enum Origin: Hashable, Sendable {
        /// The listening socket of this number, which the proxy's threads agree on.
        case socket(Int)
        /// The TUN device: the packet was for a server that never sees it.
        case tunnel
    }

    /// What the query came through.
    var origin: Origin
    /// Who asked.
    var client: Endpoint
    /// Which address, port and interface were asked: what the answer comes from.
    var server: Endpoint
}

/// The clients by UDP that wait for an answer, by their tokens. No token is used for a second query: it has a count in it, which
/// begins again only after 2³² queries.
struct DatagramClients: Sendable {
    /// How many places are kept when nobody waits.
    private static let keptCount = 256

    private var slots: [(generation: UInt32, client: DatagramClient?)] = []
    private var free: [Int] = []
    /// The count that the next token has in it.
    private var nextGeneration: UInt32 = 0

    /// How many wait.
    var count: Int { slots.count - free.count }

    /// How many there are places for without more memory.
    var capacity: Int { slots.count }

    /// The token that the next client gets.
    var nextToken: ClientToken { Self.token(free.last ?? slots.count, nextGeneration) }

    /// Keeps a client under `nextToken`, which it returns.
    @discardableResult
    mutating func add(_ client: DatagramClient) -> ClientToken {
        let token = nextToken
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append((0, nil)) }
        slots[slot] = (nextGeneration, client)
        nextGeneration &+= 1
        return token
    }

    /// Takes the client of a token; nil when it is gone.
    mutating func take(_ token: ClientToken) -> DatagramClient? {
        let slot = Int(token.rawValue & 0xFF_FFFF)
        guard slots.indices.contains(slot), Self.token(slot, slots[slot].generation) == token,
            let client = slots[slot].client
        else { return nil }
        slots[slot].client = nil
        free.append(slot)
        // A burst is over: what it needed is given back.
        if free.count == slots.count, slots.count > Self.keptCount {
            slots = []
            free = []
        }
        return client
    }

    /// The client of a token; nil when it is gone.
    func client(of token: ClientToken) -> DatagramClient? {
        let slot = Int(token.rawValue & 0xFF_FFFF)
        guard slots.indices.contains(slot), Self.token(slot, slots[slot].generation) == token else { return nil }
        return slots[slot].client
    }

    private static func token(_ slot: Int, _ generation: UInt32) -> ClientToken {
        ClientToken(rawValue: ClientKind.datagram.bits | UInt64(generation) << 24 | UInt64(slot))
    }
}

/// What the highest byte of a client's token says.
enum ClientKind: UInt64 {
    /// Kept in `DatagramClients`.
    case datagram = 1
    /// A query on a connection.
    case stream = 2

    /// The byte in its place.
    var bits: UInt64 { rawValue << 56 }

    /// What a token is of.
    init?(of token: ClientToken) {
        self.init(rawValue: token.rawValue >> 56)
    }
}
