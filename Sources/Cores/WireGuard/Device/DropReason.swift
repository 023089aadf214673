/// Why a packet or message went no further. Every drop is counted under one of these.
public enum DropReason: Int, CaseIterable, Sendable {
    /// A datagram that is no WireGuard message: length, type or reserved bytes are wrong.
    case malformedMessage
    /// The first authentication code of a handshake message does not fit.
    case invalidMAC1
    /// Under load, a source asked for more handshakes than its share.
    case rateLimited
    /// The queue of handshake messages is full.
    case handshakeQueueFull
    /// A handshake message that is not authentic, answers nothing we sent, or comes from nobody we know.
    case invalidHandshake
    /// An initiation that is no newer than one seen before, or comes too soon after it.
    case replayedInitiation
    /// A cookie reply that answers nothing we sent, or is not authentic.
    case invalidCookieReply
    /// A data message that names no session.
    case unknownReceiver
    /// A data message under a key that is too old or used up.
    case expiredSession
    /// A data message that is not authentic.
    case notAuthentic
    /// A data message whose counter was seen before, or is too old to tell.
    case replayedCounter
    /// A decrypted packet that is no IP packet, or whose length does not fit.
    case malformedPacket
    /// A decrypted packet whose source address belongs to another peer or to none.
    case sourceNotAllowed
    /// A packet from the TUN that is no IP packet, or whose length does not fit.
    case malformedTUNPacket
    /// A packet for an address that belongs to no peer.
    case noPeer
    /// A packet for a peer whose address is not known.
    case noEndpoint
    /// A packet from the TUN that is our own datagram to the peer it would be sent to: a routing loop.
    case routingLoop
    /// A packet that made room for a newer one while no session was there, or whose handshake nobody answered.
    case stagedPacketDropped
    /// A packet or message while the link is down.
    case linkDown
}

/// How often something was dropped, by reason.
public struct DropCounters: Sendable {
    private var counts = InlineArray<32, UInt64>(repeating: 0)

    /// The drops for `reason`.
    public subscript(reason: DropReason) -> UInt64 {
        counts[reason.rawValue]
    }

    /// Counts `number` more drops for `reason`.
    mutating func add(_ reason: DropReason, _ number: Int = 1) {
        counts[reason.rawValue] &+= UInt64(number)
    }
}
