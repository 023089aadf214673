/// Requests for a provider's status that are held until it changes.
///
/// The status has a revision, a number that grows with every change. Who asks names the revision that it has seen, so that a
/// change between two requests is answered at once and none is missed. Each request is answered exactly once, unless its asker
/// leaves: by the next change, at its time limit, or at once when the asker is behind, there is no time limit, or too many ask.
///
/// ```
///           ask                     changed, time limit, end
///   new ──────────▶ held ──────────────────────────────────────▶ answered
///    │                │ leave
///    │                └────▶ gone, without an answer
///    └─ behind, no time limit, too many ───────────────────────▶ answered
/// ```
public struct LongPolls: Sendable {
    /// What becomes of a request at once.
    public enum Decision: Equatable, Sendable {
        /// Answer it with the status as it is.
        case reply
        /// It is held; it will be among those that a later call returns.
        case held
        /// Answer that too many ask already.
        case refuse
    }

    private struct Asker: Sendable {
        let id: AppMessageID
        let deadline: Instant
    }

    /// The most requests that are held at one time.
    public static let maximumAskers = 64
    /// The longest time that a request is held, whatever its asker wants.
    public static let longestTimeLimit = Interval.seconds(600)

    /// The revision of the status.
    public private(set) var revision: UInt64
    private var askers: [Asker] = []

    /// Nobody asks yet.
    ///
    /// - Parameter revision: The first revision. One that differs between runs lets askers of the run before notice.
    public init(revision: UInt64 = 1) {
        self.revision = revision
    }

    /// How many requests are held.
    public var count: Int { askers.count }

    /// When the next request reaches its time limit; nil when none is held.
    public var nextDeadline: Instant? { askers.lazy.map(\.deadline).min() }

    /// Takes a request.
    ///
    /// - Parameters:
    ///   - id: The request. No other that is held has its number.
    ///   - known: The revision that the asker has seen; nil when it has seen none.
    ///   - timeLimit: How long it wants to be held at most.
    public mutating func ask(
        _ id: AppMessageID, after known: UInt64?, timeLimit: Interval, at now: Instant
    ) -> Decision {
        precondition(!askers.contains { $0.id == id }, "a request with the number of one that is held")
        guard known == revision, timeLimit.nanoseconds > 0 else { return .reply }
        guard askers.count < Self.maximumAskers else { return .refuse }
        askers.append(Asker(id: id, deadline: now + min(timeLimit, Self.longestTimeLimit)))
        return .held
    }

    /// Forgets a request whose asker went away. Nothing happens when it was answered before.
    public mutating func leave(_ id: AppMessageID) {
        askers.removeAll { $0.id == id }
    }

    /// The status changed. Returns all requests, oldest first: answer them.
    public mutating func changed() -> [AppMessageID] {
        revision &+= 1
        return end()
    }

    /// Returns the requests whose time limit is reached, oldest first: answer them.
    public mutating func expire(at now: Instant) -> [AppMessageID] {
        let due = askers.filter { $0.deadline <= now }.map(\.id)
        askers.removeAll { $0.deadline <= now }
        return due
    }

    /// Nothing will change any more. Returns all requests, oldest first: answer them.
    public mutating func end() -> [AppMessageID] {
        defer { askers.removeAll() }
        return askers.map(\.id)
    }
}
