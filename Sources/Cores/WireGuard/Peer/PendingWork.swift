/// What a peer has to do as soon as the device is asked for actions.
struct PendingWork: OptionSet {
    let rawValue: UInt8

    /// Send an initiation that is not a retransmission, unless one was sent in the last five seconds.
    static let initiate = PendingWork(rawValue: 1)
    /// Send the initiation again.
    static let retransmit = PendingWork(rawValue: 2)
    /// Send an empty message, or what is staged.
    static let keepalive = PendingWork(rawValue: 4)
    /// Send what is staged.
    static let flush = PendingWork(rawValue: 8)
    /// Note the time of day of the handshake that just ended, and tell about it.
    static let stampHandshake = PendingWork(rawValue: 16)
    /// The peer stands in the device's queue of peers with work.
    static let queued = PendingWork(rawValue: 128)
}
