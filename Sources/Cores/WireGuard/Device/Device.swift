public import Provider

/// A WireGuard device without its input and output: packets, datagrams, settings and the time go in; messages, packets and
/// actions come out. It opens no socket, reads no clock and starts no thread; the host does as it says.
///
/// - ``transmit(_:into:at:)`` takes a packet from the TUN, ``receive(_:in:from:trafficClass:at:delivering:)`` a train of
///   datagrams from the network.
/// - After each turn, and at ``nextDeadline()``, the host calls ``nextAction(into:at:wallClock:)`` until it returns nil.
///
/// Everything a peer can make it store is bounded.
public struct Device<Primitives: Cryptography>: ~Copyable {
    let cryptography: Primitives
    var entropy: Entropy

    // Settings.

    var identity: Identity?
    /// True while the link is up.
    public internal(set) var isUp = false
    /// The device's MTU in bytes: what padding may not exceed.
    public var mtu = 1420
    /// The UDP port that the host's sockets are bound to, in host order; zero when there are none. Shown to operators, and
    /// used to recognize our own datagrams in a routing loop.
    public var listenPort: UInt16 = 0
    /// The mark that the host's sockets set on what they send; zero for none. Shown to operators.
    public var firewallMark: UInt32 = 0

    // Peers.

    var peers = ContiguousArray<Peer?>()
    var freeSlots: [UInt32] = []
    var slotsByKey: [PublicKey: PeerIndex] = [:]
    var firstPeer: PeerIndex?
    var lastPeer: PeerIndex?
    var allowedIPs = AllowedIPs()
    var indices = IndexTable()

    // Work that waits for the host to ask.

    var deadlines = DeadlineQueue()
    var peersWithWork = WorkQueue()
    var handshakes = HandshakeQueue()
    var cookieChecker: CookieChecker?
    var rateLimiter = HandshakeRateLimiter()
    var unreachableLimiter = UnreachableLimiter()
    var stagedBytes = 0
    var reports: [Event] = []
    /// Kept empty between calls, for its capacity.
    var openingOrders: [OpeningOrder] = []
    /// Where jitter comes from: it has to be unpredictable to nobody, and the data path has no time for better.
    private var jitterSource: UInt64

    /// What was dropped, by reason.
    public internal(set) var drops = DropCounters()

    /// A device without a key or a peer, and with its link down.
    ///
    /// - Parameters:
    ///   - cryptography: The primitives; only this device may use the instance while a call is under way.
    ///   - entropy: Where keys, indices and jitter come from. Cryptographically secure but in tests.
    public init(cryptography: Primitives, entropy: Entropy) {
        self.cryptography = cryptography
        self.entropy = entropy
        jitterSource = self.entropy.next() | 1
    }

    /// When the device has to be asked for actions next if nothing happens before; nil for never. It is never a time that
    /// was handled: asking for actions at this instant does something about it.
    public mutating func nextDeadline() -> Instant? {
        // Exclusive access to the heap and shared access to the peers are separate.
        let peers = peers
        return deadlines.first { peers[Int($0)]?.timers.deadline }?.deadline
    }

    /// True while ``nextAction(into:at:wallClock:)`` has something to do at once.
    public var hasWork: Bool { !peersWithWork.isEmpty || !handshakes.isEmpty || !reports.isEmpty }

    /// The peer in a slot that is known to be taken.
    func peer(_ index: PeerIndex) -> Peer {
        guard let peer = peers[Int(index.rawValue)] else { preconditionFailure("no such peer") }
        return peer
    }

    /// Adds `work` to what a peer has to do.
    mutating func schedule(_ work: PendingWork, for peer: Peer) {
        if !peer.pending.contains(.queued) {
            peersWithWork.append(peer.index)
            peer.pending.insert(.queued)
        }
        peer.pending.formUnion(work)
    }

    /// Lets the queue of deadlines know that the timers of `peer` moved.
    mutating func noteDeadline(of peer: Peer) {
        if let deadline = peer.timers.deadline { deadlines.note(deadline, for: peer.index.rawValue) }
    }

    /// A random length of time up to the jitter of the handshake timers.
    mutating func jitter() -> Interval {
        // A step of xorshift64 (Marsaglia 2003).
        jitterSource ^= jitterSource << 13
        jitterSource ^= jitterSource >> 7
        jitterSource ^= jitterSource << 17
        let limit = ProtocolConstants.rekeyTimeoutJitter.nanoseconds
        return Interval(nanoseconds: jitterSource.multipliedFullWidth(by: limit + 1).high)
    }
}
