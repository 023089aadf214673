internal import WireGuard

/// A datagram, or some of a train, that could not be sent as it was meant to be.
struct SendFailure: Equatable {
    /// The peer it was for; nil for an answer to somebody who is not known to be one.
    var peer: PeerIndex?
    /// Where it was to go.
    var path: Path
    /// Why it failed.
    var errno: Int32
    /// What became of it.
    var outcome: Outcome

    /// What became of a datagram that failed.
    enum Outcome: Equatable {
        /// The local source is no longer good, and the datagram left without it: the source is to be forgotten.
        case sentWithoutSource
        /// It was dropped.
        case dropped
    }
}

/// What a flush did, in datagrams.
struct SendResult: Equatable {
    /// How many the kernel took.
    var sent = 0
    /// How many were dropped, the full buffer's among them.
    var dropped = 0
    /// How many of the dropped ones found the socket's buffer full.
    var bufferFull = 0
    /// How many of those sent left as part of a train.
    var sentInTrains = 0
    /// How many of those sent belonged to a train and left one by one, because the kernel refused trains or because the path
    /// is known not to carry them.
    var sentSingly = 0
}
