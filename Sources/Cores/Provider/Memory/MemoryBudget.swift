/// Watches a provider's memory use against the limit at which the system ends the process. The host reports the use; the budget
/// says when the level changes.
///
/// ```
///            75 %               90 %
///   normal ────────▶ warning ────────▶ critical
///      ◀────────────   ◀─────────────
///            65 %               80 %
/// ```
///
/// The way back is lower than the way there, so that a use that wavers about a threshold does not make a core shed and fill its
/// caches by turns. A leap changes two levels at once.
public struct MemoryBudget: Equatable, Sendable {
    /// The share of the limit, in percent, at which a level is entered from below.
    public static let entered: (warning: UInt64, critical: UInt64) = (75, 90)
    /// The share of the limit, in percent, below which a level is left.
    public static let left: (warning: UInt64, critical: UInt64) = (65, 80)

    /// The limit in bytes.
    public let limit: UInt64
    /// The use in bytes that was reported last.
    public private(set) var used: UInt64 = 0
    /// The level as it is.
    public private(set) var level = MemoryLevel.normal

    /// A budget of `limit` bytes, at least one.
    public init(limit: UInt64) {
        precondition(limit > 0, "a budget of nothing")
        self.limit = limit
    }

    /// How many bytes are left.
    public var available: UInt64 { limit > used ? limit - used : 0 }

    /// Takes the use in bytes.
    ///
    /// - Returns: The level when it changed.
    public mutating func report(used: UInt64) -> MemoryLevel? {
        self.used = used
        let before = level
        if isUse(atLeast: Self.entered.critical) {
            level = .critical
        } else if level == .critical, isUse(atLeast: Self.left.critical) {
            level = .critical
        } else if isUse(atLeast: Self.entered.warning) {
            level = .warning
        } else if level > .normal, isUse(atLeast: Self.left.warning) {
            level = .warning
        } else {
            level = .normal
        }
        return level == before ? nil : level
    }

    private func isUse(atLeast percent: UInt64) -> Bool {
        // Both products in full width: a limit may be any number.
        let use = used.multipliedFullWidth(by: 100)
        let threshold = limit.multipliedFullWidth(by: percent)
        return (use.high, use.low) >= (threshold.high, threshold.low)
    }
}
