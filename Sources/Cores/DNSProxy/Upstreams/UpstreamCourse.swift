/// Which servers a lookup asks, in which order, and how far it has got.
///
/// ```
///   at leisure:     wave ─▶ the same once more ─▶ next wave ─▶ the same once more …
///   hastened:       wave ─▶ next wave …          ─▶ second round: wave ─▶ next wave …
///                   the only wave ─▶ once more   ─▶ second round: once more
/// ```
///
/// A wave is those that are asked at once: one server, but for the strategies that ask several.
struct UpstreamCourse: Sendable {
    /// A server that may be asked.
    struct Candidate: Sendable {
        let upstream: UpstreamID
        /// True when it was asked once more.
        var hasRetried = false
    }

    /// The servers in the order to try them.
    private(set) var candidates: [Candidate]
    /// The places of those that are asked now.
    private(set) var wave: Range<Int>
    /// True when all of them have been asked before.
    private(set) var isSecondRound = false
    /// True when a server was given less time than its share.
    var isHastened = false
    private let width: Int

    /// Nobody to be asked.
    static var none: Self { Self([], firstCount: 0, width: 1) }

    /// A course that begins with the first `firstCount` servers at once, and goes on with up to `width` at a time.
    init(_ order: [UpstreamID], firstCount: Int = 1, width: Int = 1) {
        candidates = order.map { Candidate(upstream: $0) }
        wave = 0..<firstCount
        self.width = width
    }

    /// How many steps there are, the present one included.
    var stepsLeft: Int {
        let wavesLeft = waveCount(from: wave.upperBound)
        if isSecondRound { return 1 + wavesLeft }
        let retries = asksOnceMore && wave.contains { !candidates[$0].hasRetried } ? 1 : 0
        return 1 + retries + (asksOnceMore ? 2 : 1) * wavesLeft + (isHastened ? waveCount(from: 0) : 0)
    }

    /// The last server of those that are asked now; nil when nobody was asked yet.
    var latest: UpstreamID? { wave.isEmpty ? nil : candidates[wave.upperBound - 1].upstream }

    /// True when all servers have been asked that this round asks.
    var isLastWave: Bool { wave.upperBound >= candidates.count }

    /// True when a server that takes too long is asked once more before others are. Who is in haste asks others.
    var asksOnceMore: Bool { !isSecondRound && (!isHastened || isOnlyWave) }

    /// True when a step may be hastened: others are asked then, or the same once more where there are no others.
    var mayHasten: Bool {
        !isSecondRound && (!isLastWave || isOnlyWave && wave.contains { !candidates[$0].hasRetried })
    }

    private var isOnlyWave: Bool { wave.lowerBound == 0 && isLastWave }

    private func waveCount(from first: Int) -> Int { (candidates.count - first + width - 1) / width }

    /// The place in the present wave of a server that has not been asked once more yet.
    func retryPlace(of upstream: UpstreamID) -> Int? {
        wave.first { candidates[$0].upstream == upstream && !candidates[$0].hasRetried }
    }

    /// Notes that the server at a place is asked once more.
    mutating func noteRetry(at place: Int) { candidates[place].hasRetried = true }

    /// Goes on to the next servers. False when there are none.
    ///
    /// - Parameter startsOver: True when the second round may begin.
    mutating func moveOn(startsOver: Bool) -> Bool {
        if !isLastWave {
            wave = wave.upperBound..<min(wave.upperBound + width, candidates.count)
            return true
        }
        guard startsOver, isHastened, !isSecondRound else { return false }
        isSecondRound = true
        for place in candidates.indices { candidates[place].hasRetried = true }
        wave = 0..<min(width, candidates.count)
        return true
    }
}
