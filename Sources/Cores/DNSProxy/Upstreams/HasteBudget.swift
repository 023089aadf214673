/// How many questions may be put again, or to others, because a server takes longer than usual: ten, and one more for ten answers. When
/// everything takes longer, that is as it is, and more questions would make it worse.
struct HasteBudget: Sendable {
    private static let price = 10
    private var balance = 10 * HasteBudget.price

    /// The server answered.
    mutating func noteAnswer() { balance = min(balance + 1, 10 * Self.price) }

    /// Takes one out. False when there is none.
    mutating func spend() -> Bool {
        guard balance >= Self.price else { return false }
        balance -= Self.price
        return true
    }
}
