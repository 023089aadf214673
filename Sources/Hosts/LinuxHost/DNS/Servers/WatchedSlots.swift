/// What the event loop watches, by token: each thing in a slot of its own, whose number is in the token with the slot's generation, so
/// that an event for what was there before finds nothing.
struct WatchedSlots<Element> {
    private let firstToken: UInt64
    private var slots: [(generation: UInt64, element: Element?)] = []
    private var free: [Int] = []

    /// How many tokens a table of slots takes up.
    static var tokenCount: UInt64 { 1 << 30 }

    /// No things; their tokens will be those from `firstToken` on.
    init(firstToken: UInt64) {
        self.firstToken = firstToken
    }

    /// How many things there are.
    var count: Int { slots.count - free.count }

    /// All things.
    var elements: [Element] { slots.compactMap(\.element) }

    /// Keeps a thing, and returns its token.
    mutating func add(_ element: Element) -> UInt64 {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append((0, nil)) }
        slots[slot].element = element
        return token(slot)
    }

    /// The thing with a token; nil when it is gone.
    subscript(token: UInt64) -> Element? {
        guard let slot = slot(of: token) else { return nil }
        return slots[slot].element
    }

    /// Takes out the thing with a token.
    @discardableResult
    mutating func remove(_ token: UInt64) -> Element? {
        guard let slot = slot(of: token), let element = slots[slot].element else { return nil }
        slots[slot].element = nil
        slots[slot].generation = (slots[slot].generation + 1) & 0x3FFF
        free.append(slot)
        return element
    }

    private func token(_ slot: Int) -> UInt64 { firstToken + (slots[slot].generation << 16 | UInt64(slot)) }

    private func slot(of token: UInt64) -> Int? {
        guard token >= firstToken, token - firstToken < Self.tokenCount else { return nil }
        let slot = Int((token - firstToken) & 0xFFFF)
        guard slots.indices.contains(slot), self.token(slot) == token else { return nil }
        return slot
    }
}
