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

/// The clients by UDP that wait for an answer, by their tokens. A token's number is never used for a second query: it counts.
struct DatagramClients: Sendable {
    private var slots: [(generation: UInt32, client: DatagramClient?)] = []
    private var free: [Int] = []

    /// How many wait.
    var count: Int { slots.count - free.count }

    /// The token that the next client gets.
    var nextToken: ClientToken { token(free.last ?? slots.count) }

    /// Keeps a client under `nextToken`, which it returns.
    @discardableResult
    mutating func add(_ client: DatagramClient) -> ClientToken {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append((0, nil)) }
        slots[slot].client = client
        return token(slot)
    }

    /// Takes the client of a token; nil when it is gone.
    mutating func take(_ token: ClientToken) -> DatagramClient? {
        let slot = Int(token.rawValue & 0xFF_FFFF)
        guard slots.indices.contains(slot), self.token(slot) == token, let client = slots[slot].client else {
            return nil
        }
        slots[slot].generation &+= 1
        slots[slot].client = nil
        free.append(slot)
        return client
    }

    private func token(_ slot: Int) -> ClientToken {
        let generation = UInt64(slots.indices.contains(slot) ? slots[slot].generation : 0)
        return ClientToken(rawValue: ClientKind.datagram.bits | generation << 24 | UInt64(slot))
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
