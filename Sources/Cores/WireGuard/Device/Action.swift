/// What a device asks its host to do.
public enum Action: Sendable {
    /// Send the first `length` bytes of the output buffer.
    case send(length: Int, Transmission)
    /// Note an event: for logs and status.
    case report(Event)
    /// Work was done and nothing comes of it. There may be more: ask again when packets had their turn.
    case nothing
}

/// What happened to a peer that an operator may want to know.
public enum Event: Equatable, Sendable {
    /// A handshake ended and keys are in place.
    case handshakeCompleted(PeerIndex)
    /// Nobody answered for 90 seconds; packets that waited are gone.
    case handshakeGivenUp(PeerIndex)
    /// An initiation had a time stamp no later than an earlier one: a replay, or the peer's clock stepped back.
    case initiationReplayed(PeerIndex)
    /// The peer is heard from at another address than before.
    case endpointChanged(PeerIndex)

    /// The peer that it happened to.
    public var peer: PeerIndex {
        switch self {
        case .handshakeCompleted(let peer), .handshakeGivenUp(let peer), .initiationReplayed(let peer),
            .endpointChanged(let peer):
            peer
        }
    }
}
