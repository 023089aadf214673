public import Provider

/// What a link does to the datagrams on it. Shares are out of 1,000.
public struct LinkFaults: Equatable, Sendable {
    /// How many datagrams out of 1,000 are lost.
    public var lossPerMille: UInt64
    /// How many out of 1,000 arrive twice.
    public var duplicationPerMille: UInt64
    /// How many out of 1,000 are held back by `reorderingDelay`, so that later ones overtake them.
    public var reorderingPerMille: UInt64
    /// How long a datagram that is to be overtaken is held back.
    public var reorderingDelay: Interval
    /// How long every datagram travels.
    public var delay: Interval
    /// The most that is randomly added to `delay`.
    public var jitter: Interval

    /// Faults; without arguments a perfect link on which nothing takes time.
    public init(
        lossPerMille: UInt64 = 0, duplicationPerMille: UInt64 = 0, reorderingPerMille: UInt64 = 0,
        reorderingDelay: Interval = .milliseconds(20), delay: Interval = .milliseconds(0),
        jitter: Interval = .milliseconds(0)
    ) {
        self.lossPerMille = lossPerMille
        self.duplicationPerMille = duplicationPerMille
        self.reorderingPerMille = reorderingPerMille
        self.reorderingDelay = reorderingDelay
        self.delay = delay
        self.jitter = jitter
    }
}

/// One direction of a link, with faults that a seed repeats.
public struct FaultyLink: Sendable {
    /// What the link does to datagrams from now on.
    public var faults: LinkFaults
    /// True while nothing gets through.
    public var isCut = false
    private var generator: SeededGenerator

    /// A link with faults drawn from `seed`.
    public init(faults: LinkFaults = LinkFaults(), seed: UInt64) {
        self.faults = faults
        generator = SeededGenerator(seed: seed)
    }

    /// Decides what becomes of one datagram: how long each copy that arrives travels. None arrive of a lost one.
    public mutating func fate() -> [Interval] {
        // The same numbers are drawn whatever the outcome, so that a cut does not change what comes after it.
        let (loss, duplication) = (draw(), draw())
        let first = travelTime()
        let second = travelTime()
        if isCut || loss < faults.lossPerMille { return [] }
        return duplication < faults.duplicationPerMille ? [first, second] : [first]
    }

    private mutating func travelTime() -> Interval {
        let isHeldBack = draw() < faults.reorderingPerMille
        let jitter = generator.next(upperBound: faults.jitter.nanoseconds + 1)
        let time = faults.delay + Interval(nanoseconds: jitter)
        return isHeldBack ? time + faults.reorderingDelay : time
    }

    private mutating func draw() -> UInt64 {
        generator.next(upperBound: 1000)
    }
}
