import IPPacket
import Provider

/// Everything a device knows about one peer.
final class Peer {
    /// The peer's name.
    let publicKey: PublicKey
    /// Its slot in the device.
    let index: PeerIndex

    // What the operator configured.

    /// Mixed into handshakes; 32 zero bytes when there is none.
    var presharedKey = SecretMemory(byteCount: 32)
    /// X25519 of our private and the peer's public key.
    var staticStatic = SecretMemory(byteCount: 32)
    /// False when there is no private key, or the peer's key is of low order: no handshake is possible then.
    var hasUsableKeys = false
    /// Where the peer was heard from last, or was configured to be.
    var path: Path?
    /// Our address that was forgotten because routes changed, until something was sent without it: what the peer had under way
    /// to it must not bring it back.
    var distrustedSource: IPAddress?

    /// Until when the way to the peer is known to be too narrow for the longest messages; nil when it is not.
    var narrowPathExpiry: Instant?

    // Protocol state.

    var handshake = InitiatorHandshake()
    var sessions = SessionRotation()
    var timers = PeerTimers()
    var cookies = CookieJar()
    var staged = StagedPackets()
    var pending: PendingWork = []
    /// When an initiation, or a response, was sent last.
    var lastHandshakeSent: Instant?
    /// When an initiation was consumed last.
    var lastInitiationConsumed: Instant?
    /// The greatest time stamp that the peer has shown.
    var greatestTimestamp: Timestamp?
    /// The time stamp that we showed last.
    var lastTimestampSent: Timestamp?
    /// The initiator has started the new handshake that an old session's last received data calls for.
    var hasStartedLastMinuteHandshake = false

    // What an operator is shown.

    /// When the last handshake ended, by the wall clock.
    var lastHandshake: WallClockTime?
    /// Bytes of whole messages received from, and sent to, the peer.
    var receivedBytes: UInt64 = 0
    var sentBytes: UInt64 = 0

    // The list of peers in the order of their creation.

    var previousPeer: PeerIndex?
    var nextPeer: PeerIndex?

    init(publicKey: PublicKey, index: PeerIndex) {
        self.publicKey = publicKey
        self.index = index
    }

    /// True while the way to the peer is known to be too narrow for the longest messages.
    @inline(__always)
    func isOnNarrowPath(at now: Instant) -> Bool {
        guard let expiry = narrowPathExpiry else { return false }
        return now < expiry
    }
}
