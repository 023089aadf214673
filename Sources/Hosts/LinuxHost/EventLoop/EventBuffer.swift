internal import CLinux

/// What a descriptor is watched for.
struct EventInterest: OptionSet, Sendable {
    let rawValue: UInt8

    /// There is something to read, or to accept, or the end was reached.
    static let readable = EventInterest(rawValue: 1)
    /// There is room to write.
    static let writable = EventInterest(rawValue: 2)
}

/// When a watched condition is reported.
enum EventTrigger: Sendable {
    /// By every wait as long as it holds.
    case level
    /// Once each time it comes to hold.
    case edge
}

/// The conditions of a descriptor that a wait reports. Errors and hang-ups are reported without being asked for.
struct EventReadiness: OptionSet, Sendable {
    let rawValue: UInt8

    /// A read will not block.
    static let readable = EventReadiness(rawValue: 1)
    /// A write will not block.
    static let writable = EventReadiness(rawValue: 2)
    /// An error is pending on the descriptor, or its device is gone.
    static let error = EventReadiness(rawValue: 4)
    /// The other end closed.
    static let hangUp = EventReadiness(rawValue: 8)
}

/// One reported descriptor.
struct Event: Equatable, Sendable {
    /// What the descriptor was registered under.
    var token: UInt64
    /// Its conditions.
    var readiness: EventReadiness
}

/// Where a wait puts its events: allocated once.
@safe struct EventBuffer: ~Copyable {
    /// How many events one wait can report.
    let capacity: Int
    /// How many events the last wait reported.
    var count = 0
    /// `capacity` initialized events. Owned by this value and reached only from this file and `EventLoop`.
    let storage: UnsafeMutablePointer<epoll_event>

    /// Room for `capacity` events.
    init(capacity: Int) {
        precondition(capacity > 0, "an event buffer without room")
        self.capacity = capacity
        unsafe storage = .allocate(capacity: capacity)
        unsafe storage.initialize(repeating: epoll_event(), count: capacity)
    }

    deinit {
        // epoll_event is trivial: nothing to deinitialize.
        unsafe storage.deallocate()
    }

    /// Event `index` of the last wait.
    subscript(index: Int) -> Event {
        precondition(index >= 0 && index < count, "no such event")
        // In bounds: count never exceeds the capacity. The token was stored as the 64-bit member of the union.
        let (conditions, token) = unsafe (storage[index].events, storage[index].data.u64)
        var readiness: EventReadiness = []
        if conditions & EPOLLIN.rawValue != 0 { readiness.insert(.readable) }
        if conditions & EPOLLOUT.rawValue != 0 { readiness.insert(.writable) }
        if conditions & EPOLLERR.rawValue != 0 { readiness.insert(.error) }
        if conditions & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0 { readiness.insert(.hangUp) }
        return Event(token: token, readiness: readiness)
    }

    /// Takes event `index` out of the list.
    mutating func remove(at index: Int) {
        precondition(index >= 0 && index < count, "no such event")
        count -= 1
        // In bounds, as above.
        unsafe storage[index] = storage[count]
    }
}
