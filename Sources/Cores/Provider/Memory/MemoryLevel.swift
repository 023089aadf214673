/// How near a provider is to its memory limit.
public enum MemoryLevel: Int, Comparable, CaseIterable, Sendable {
    /// There is enough.
    case normal
    /// It gets tight: give back what can be made again.
    case warning
    /// The system may end the process any moment: give back everything that is not needed to go on.
    case critical

    /// Orders the better level first.
    public static func < (left: MemoryLevel, right: MemoryLevel) -> Bool { left.rawValue < right.rawValue }

    /// What a core should give back at this level.
    public var shedding: MemoryShedding {
        switch self {
        case .normal: []
        case .warning: [.spareCapacity, .oldCacheEntries, .newHeldData]
        case .critical: [.spareCapacity, .oldCacheEntries, .newHeldData, .caches, .heldData, .newFlows]
        }
    }
}

extension MemoryLevel: PubliclyLoggable, CustomStringConvertible {
    /// The name of the level.
    public var description: String {
        switch self {
        case .normal: "normal"
        case .warning: "warning"
        case .critical: "critical"
        }
    }
}

/// What a core does without while memory is short.
public struct MemoryShedding: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt8

    /// Things by their bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Buffers that are larger than what is in them.
    public static let spareCapacity = MemoryShedding(rawValue: 1 << 0)
    /// The older half of every cache.
    public static let oldCacheEntries = MemoryShedding(rawValue: 1 << 1)
    /// Data of flows that would be held from now on: they are judged without.
    public static let newHeldData = MemoryShedding(rawValue: 1 << 2)
    /// All that is in a cache.
    public static let caches = MemoryShedding(rawValue: 1 << 3)
    /// Packets and data that wait for something: they are dropped and counted.
    public static let heldData = MemoryShedding(rawValue: 1 << 4)
    /// New flows: they are refused.
    public static let newFlows = MemoryShedding(rawValue: 1 << 5)
}
