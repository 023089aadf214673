/// A run of data messages under one session, to be opened: a device gives it out, opening then needs the device no more, and
/// ``Device/finish(_:in:from:trafficClass:at:delivering:)`` takes what came of it.
///
/// It holds the session's keys: to be used at once and dropped.
public struct OpeningOrder: Sendable {
    /// The messages: at most 64.
    public let run: MessageTrain
    let peer: PeerIndex
    let session: Keypair
    /// Bit N is set when message N was authentic.
    private(set) var authentic: UInt64 = 0

    init(_ run: MessageTrain, from peer: PeerIndex, under session: Keypair) {
        self.run = run
        self.peer = peer
        self.session = session
    }

    /// Opens the messages in place.
    public mutating func open(in buffer: inout MutableRawSpan, using cryptography: some Cryptography) {
        authentic = session.open(run, in: &buffer, using: cryptography)
    }
}
