/// The up to three sessions of a peer and how a new one takes over without losing a packet (Linux; paper, section 6.3).
///
/// ```
///  initiator: a response came          responder: a response was sent      responder: first message under next
///
///    new      ─▶ current                 new  ─▶ next                        next     ─▶ current
///    current  ─▶ previous                next, previous dropped              current  ─▶ previous
///    next     ─▶ previous, if there                                          previous dropped
///                (current is dropped)
/// ```
///
/// Messages are accepted under all three, and sent under current only: the responder's new key is unconfirmed until the
/// initiator has used it.
struct SessionRotation {
    private(set) var previous: Keypair?
    private(set) var current: Keypair?
    private(set) var next: Keypair?

    /// The local indices of sessions that an input dropped: they must no longer be found.
    typealias Dropped = (UInt32?, UInt32?)

    /// Takes the session that a handshake of ours made.
    mutating func addInitiated(_ keypair: Keypair) -> Dropped {
        let dropped: Dropped
        if let next {
            dropped = (previous?.localIndex, current?.localIndex)
            previous = next
            self.next = nil
        } else {
            dropped = (previous?.localIndex, nil)
            previous = current
        }
        current = keypair
        return dropped
    }

    /// Takes the session that we answered a handshake with.
    mutating func addResponded(_ keypair: Keypair) -> Dropped {
        let dropped = (next?.localIndex, previous?.localIndex)
        next = keypair
        previous = nil
        return dropped
    }

    /// What the arrival of an authentic message under a session means.
    enum Receipt {
        /// The session was in use already.
        case known
        /// The peer confirmed the next session: it is current now.
        case confirmed(dropped: UInt32?)
    }

    /// Notes that an authentic message under `keypair` came in.
    mutating func received(under keypair: Keypair) -> Receipt {
        guard let next, next === keypair else { return .known }
        let dropped = previous?.localIndex
        previous = current
        current = next
        self.next = nil
        return .confirmed(dropped: dropped)
    }

    /// Drops all sessions and returns the local indices they had.
    mutating func removeAll() -> (UInt32?, UInt32?, UInt32?) {
        let dropped = (previous?.localIndex, current?.localIndex, next?.localIndex)
        previous = nil
        current = nil
        next = nil
        return dropped
    }
}
