internal import DNSProxy

/// What an event of a loop is about, by the token that its descriptor is registered under.
enum ClientSideToken: Equatable {
    /// The socket for datagrams of the listener with this number.
    case datagrams(Int)
    /// The socket that clients of this listener connect to.
    case listener(Int)
    /// A client's connection. The generation tells it from those that had the place before.
    case connection(slot: Int, generation: UInt32)

    /// All tokens that stand for something of these.
    static let range: Range<UInt64> = 1 << 32..<1 << 33

    private static let kindShift: UInt64 = 30
    private static let numberMask: UInt64 = 1 << kindShift - 1
    /// How many bits of a connection's number are its slot.
    private static let slotBits: UInt64 = 8
    /// The bits of a generation that a token has room for.
    static let generationMask: UInt32 = 1 << 22 - 1

    /// What a token stands for; nil when it is somebody else's.
    init?(rawValue: UInt64) {
        guard Self.range.contains(rawValue) else { return nil }
        let number = rawValue & Self.numberMask
        switch (rawValue - Self.range.lowerBound) >> Self.kindShift {
        case 0: self = .datagrams(Int(number))
        case 1: self = .listener(Int(number))
        case 2:
            let slot = Int(number & (1 << Self.slotBits - 1))
            self = .connection(slot: slot, generation: UInt32(number >> Self.slotBits))
        default: return nil
        }
    }

    /// The token.
    var rawValue: UInt64 {
        let (kind, number): (UInt64, UInt64) =
            switch self {
            case .datagrams(let number): (0, UInt64(number))
            case .listener(let number): (1, UInt64(number))
            case .connection(let slot, let generation): (2, UInt64(generation) << Self.slotBits | UInt64(slot))
            }
        return Self.range.lowerBound | kind << Self.kindShift | number & Self.numberMask
    }
}

/// Names a query on a connection: the highest byte says that it is one (`ClientKind`), then come the connection and a number.
struct StreamQuery: Equatable {
    /// The place of the connection: a byte.
    var slot: Int
    /// Which of the connections that had the place it is: 22 bits of the 24 that there are.
    var generation: UInt32
    /// Which of its queries: 24 bits.
    var number: UInt32

    /// The bits of a number that a token has room for.
    static let numberMask: UInt32 = 1 << 24 - 1

    /// A query on a connection.
    init(slot: Int, generation: UInt32, number: UInt32) {
        self.slot = slot
        self.generation = generation
        self.number = number
    }

    /// The query that a token names; nil when it is not one on a connection.
    init?(_ token: ClientToken) {
        guard ClientKind(of: token) == .stream else { return nil }
        slot = Int(token.rawValue >> 48 & 0xFF)
        generation = UInt32(token.rawValue >> 24 & 0xFF_FFFF)
        number = UInt32(token.rawValue & UInt64(Self.numberMask))
    }

    /// The token that names it.
    var token: ClientToken {
        ClientToken(
            rawValue: ClientKind.stream.bits | UInt64(slot) << 48 | UInt64(generation) << 24 | UInt64(number))
    }
}
