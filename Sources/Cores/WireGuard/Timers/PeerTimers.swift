import Provider

/// The five timers of a peer (paper, section 6; conduct as Linux). Inputs say what happened; `nextExpiry` hands out what is
/// due, one timer at a time, each cleared by being handed out.
///
/// ```
///  timer                  armed by                                   cleared by                         when due
///  retransmitInitiation   initiation sent: 5 s + jitter              handshake complete                 initiate again, 20 tries
///  keepalive              data received, unless armed: 10 s          anything authenticated sent        send a keepalive
///  newHandshake           data sent, unless armed: 15 s + jitter     anything authenticated received    initiate
///  zeroKeyMaterial        session made: 540 s; giving up             all keys wiped                     wipe all keys
///  persistentKeepalive    anything authenticated sent or received    interval set to zero               send a keepalive
/// ```
struct PeerTimers {
    /// What the peer has to do because a timer ran out.
    enum Expiry {
        /// Send the initiation again.
        case retransmitInitiation
        /// Nobody answers: drop what waits for a session.
        case giveUp
        /// Send an empty message: data came in and nothing went out since.
        case sendKeepalive
        /// Nothing came back for what was sent: start a new handshake.
        case startHandshake
        /// Wipe all keys.
        case zeroKeyMaterial
        /// Send an empty message because the interval says so.
        case sendPersistentKeepalive
    }

    private static let never = Instant(nanoseconds: .max)

    private var retransmitInitiation = Self.never
    private var keepalive = Self.never
    private var newHandshake = Self.never
    private var zeroKeyMaterial = Self.never
    private var persistentKeepalive = Self.never
    /// Retransmissions of the handshake under way.
    private var attempts = 0
    /// The configured interval; nil when off.
    private var persistentInterval: Interval?

    /// The earliest deadline, or nil when no timer runs.
    var deadline: Instant? {
        let earliest = min(
            min(retransmitInitiation, keepalive), min(newHandshake, zeroKeyMaterial), persistentKeepalive)
        return earliest == Self.never ? nil : earliest
    }

    /// Data, not a keepalive, was sent.
    mutating func dataSent(at now: Instant, jitter: Interval) {
        if newHandshake == Self.never {
            newHandshake = now + (ProtocolConstants.keepaliveTimeout + ProtocolConstants.rekeyTimeout) + jitter
        }
    }

    /// Data, not a keepalive, was received.
    mutating func dataReceived(at now: Instant) {
        if keepalive == Self.never { keepalive = now + ProtocolConstants.keepaliveTimeout }
    }

    /// Any authenticated message was sent.
    mutating func authenticatedMessageSent(at now: Instant) {
        keepalive = Self.never
        authenticatedMessagePassed(at: now)
    }

    /// Any authenticated message was received.
    mutating func authenticatedMessageReceived(at now: Instant) {
        newHandshake = Self.never
        authenticatedMessagePassed(at: now)
    }

    private mutating func authenticatedMessagePassed(at now: Instant) {
        if let persistentInterval { persistentKeepalive = now + persistentInterval }
    }

    /// A handshake is started that is not a retransmission.
    mutating func handshakeStarted() {
        attempts = 0
    }

    /// An initiation was sent.
    mutating func initiationSent(at now: Instant, jitter: Interval) {
        retransmitInitiation = now + ProtocolConstants.rekeyTimeout + jitter
    }

    /// An initiation is called for, but may not follow the handshake message sent at `last` yet: it is due when it may.
    mutating func initiationPostponed(after last: Instant, jitter: Interval) {
        guard retransmitInitiation == Self.never else { return }
        retransmitInitiation = last + ProtocolConstants.rekeyTimeout + jitter
    }

    /// A handshake ended well, at either end.
    mutating func handshakeCompleted() {
        retransmitInitiation = Self.never
        attempts = 0
    }

    /// A session was made.
    mutating func sessionDerived(at now: Instant) {
        zeroKeyMaterial = now + ProtocolConstants.zeroKeyMaterialAfter
    }

    /// The interval of persistent keepalives was set; nil turns them off.
    mutating func setPersistentKeepalive(_ interval: Interval?, at now: Instant) {
        persistentInterval = interval
        persistentKeepalive = interval.map { now + $0 } ?? Self.never
    }

    /// The configured interval of persistent keepalives; nil when off.
    var persistentKeepaliveInterval: Interval? { persistentInterval }

    /// Stops every timer: the link went down.
    mutating func stop() {
        let interval = persistentInterval
        self = PeerTimers()
        persistentInterval = interval
    }

    /// One timer that is due at `now`, cleared; nil when none is.
    mutating func nextExpiry(at now: Instant) -> Expiry? {
        if retransmitInitiation <= now {
            retransmitInitiation = Self.never
            guard attempts <= ProtocolConstants.maximumHandshakeAttempts else { return giveUp(at: now) }
            attempts += 1
            return .retransmitInitiation
        }
        if keepalive <= now {
            keepalive = Self.never
            return .sendKeepalive
        }
        if newHandshake <= now {
            newHandshake = Self.never
            return .startHandshake
        }
        if zeroKeyMaterial <= now {
            zeroKeyMaterial = Self.never
            return .zeroKeyMaterial
        }
        if persistentKeepalive <= now {
            persistentKeepalive = persistentInterval.map { now + $0 } ?? Self.never
            return .sendPersistentKeepalive
        }
        return nil
    }

    private mutating func giveUp(at now: Instant) -> Expiry {
        keepalive = Self.never
        if zeroKeyMaterial == Self.never { zeroKeyMaterial = now + ProtocolConstants.zeroKeyMaterialAfter }
        return .giveUp
    }
}
