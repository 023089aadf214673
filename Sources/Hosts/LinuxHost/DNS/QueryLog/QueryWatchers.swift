internal import Provider

/// The programs that wait for the next query of the log. Each is answered exactly once: by the next queries, at its time limit, or when
/// the log changes.
struct QueryWatchers {
    /// How long the first new query waits for others: a busy proxy would have its watchers answered for each single one.
    static let pause = Interval.milliseconds(50)

    /// Tells of new queries.
    let news: QueryNews
    private var polls = LongPolls()
    private var numbers: [AppMessageID: UInt64] = [:]
    private var dueAt: Instant?

    /// Nobody waits.
    init() throws(SystemCallError) {
        news = try QueryNews()
    }

    /// When ``due(at:)`` has something; nil for never.
    var nextDeadline: Instant? {
        guard let dueAt, let limit = polls.nextDeadline else { return dueAt ?? polls.nextDeadline }
        return min(dueAt, limit)
    }

    /// Has a program wait for a query with a number. False when too many wait already.
    mutating func hold(_ id: AppMessageID, for number: UInt64, timeLimit: Interval, at now: Instant) -> Bool {
        guard polls.ask(id, after: polls.revision, timeLimit: timeLimit, at: now) == .held else { return false }
        numbers[id] = number
        return true
    }

    /// There are new queries.
    mutating func noteNews(at now: Instant) {
        _ = news.wakeUp.clear()
        if dueAt == nil { dueAt = now + Self.pause }
    }

    /// Takes out the programs that are to be answered now, with the numbers that they wait for.
    mutating func due(at now: Instant) -> [(id: AppMessageID, number: UInt64)] {
        if let dueAt, dueAt <= now { return all() }
        return take(polls.expire(at: now))
    }

    /// Takes out all programs.
    mutating func all() -> [(id: AppMessageID, number: UInt64)] {
        dueAt = nil
        return take(polls.changed())
    }

    /// Forgets a program that went away.
    mutating func leave(_ id: AppMessageID) {
        polls.leave(id)
        numbers[id] = nil
    }

    private mutating func take(_ ids: [AppMessageID]) -> [(id: AppMessageID, number: UInt64)] {
        ids.compactMap { id in numbers.removeValue(forKey: id).map { (id, $0) } }
    }
}
