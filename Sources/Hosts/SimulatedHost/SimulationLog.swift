public import Provider
public import WireGuard

/// What kind of message a datagram holds, by its first byte and its length.
public enum MessageKind: Equatable, Sendable {
    case initiation, response, cookieReply, keepalive, data
    /// No WireGuard message.
    case other

    /// The kind of a datagram.
    public init(of datagram: [UInt8]) {
        self =
            switch (datagram.first, datagram.count) {
            case (1, 148): .initiation
            case (2, 92): .response
            case (3, 64): .cookieReply
            case (4, 32): .keepalive
            case (4, 33...): .data
            default: .other
            }
    }
}

/// One thing that happened in a simulation.
public struct LoggedEvent: Equatable, Sendable {
    /// What happened.
    public enum Kind: Equatable, Sendable {
        /// The machine put a message on the network.
        case sent(MessageKind, length: Int, to: Endpoint)
        /// A message of the machine was lost on its link, or was for an address that nobody has.
        case lost(MessageKind)
        /// A message came to the machine.
        case received(MessageKind)
        /// A program on the machine sent a packet of this many bytes into the tunnel, and this became of it.
        case packetIn(length: Int, PacketFate)
        /// A packet of this many bytes came out of the tunnel.
        case packetOut(length: Int)
        /// The device told its host something.
        case reported(Event)
    }

    /// When it happened.
    public let time: Instant
    /// The number of the machine that it happened to, in the order they were added.
    public let machine: Int
    /// What happened.
    public let kind: Kind
}

/// What a device did with a packet from its TUN.
public enum PacketFate: Equatable, Sendable {
    /// Sealed and sent.
    case sent
    /// Waits for a session.
    case staged
    /// Dropped, and its sender told by an ICMP error of this many bytes.
    case unreachable(length: Int, DropReason)
    /// Dropped.
    case dropped(DropReason)
}
