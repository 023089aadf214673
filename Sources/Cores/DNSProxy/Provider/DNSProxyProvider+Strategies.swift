internal import Provider

extension DNSProxyProvider {
    /// How many servers are asked at once at most.
    private static let parallelCount = 3

    /// The order in which to ask the servers of a group: those that are down after all others.
    func course(among group: [UpstreamID], _ strategy: UpstreamStrategy, at now: Instant) -> UpstreamCourse {
        guard group.count > 1 else { return UpstreamCourse(group) }
        var (order, upCount) = rank(group, strategy, at: now)
        switch strategy {
        case .ordered: return UpstreamCourse(order)
        case .parallel:
            let count = min(upCount > 0 ? upCount : order.count, Self.parallelCount)
            return UpstreamCourse(order, firstCount: count, width: Self.parallelCount)
        case .fastest:
            let known = order[..<upCount].dropFirst().firstIndex { upstreams[$0.index].isDueForComparison(at: now) }
            guard let known else { return UpstreamCourse(order) }
            order.insert(order.remove(at: known), at: 1)
            return UpstreamCourse(order, firstCount: 2)
        }
    }

    /// The servers in their order, and how many of them are up. Those that are equal stay in the order of the configuration.
    private func rank(
        _ group: [UpstreamID], _ strategy: UpstreamStrategy, at now: Instant
    ) -> (order: [UpstreamID], upCount: Int) {
        var ranked: [(upstream: UpstreamID, rank: UpstreamRank)] = []
        ranked.reserveCapacity(group.count)
        for upstream in group {
            let rank = UpstreamRank(upstreams[upstream.index], byTime: strategy == .fastest, at: now)
            ranked.insert((upstream, rank), at: ranked.firstIndex { rank < $0.rank } ?? ranked.count)
        }
        return (ranked.map(\.upstream), ranked.count { $0.rank.standing != .down })
    }
}

/// What decides between two servers.
private struct UpstreamRank: Comparable {
    enum Standing: Int {
        case up
        /// It was down, and may be back.
        case returning
        case down
    }

    let standing: Standing
    private let time: Interval

    init(_ state: UpstreamState, byTime: Bool, at now: Instant) {
        if state.health.isDown(at: now) {
            standing = .down
        } else {
            // Where the order is that of the configuration, a server that may be back has its place in it again.
            standing = byTime && state.health.awaitsProbation(at: now) ? .returning : .up
        }
        time = byTime ? state.usualTime : Interval(nanoseconds: 0)
    }

    static func < (left: Self, right: Self) -> Bool {
        left.standing == right.standing ? left.time < right.time : left.standing.rawValue < right.standing.rawValue
    }
}
