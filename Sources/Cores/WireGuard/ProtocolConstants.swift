import Provider

/// The protocol's limits (WireGuard paper, sections 5 and 6; values marked "Linux" are the kernel driver's).
enum ProtocolConstants {
    /// A sender starts a new handshake after this many messages on one key.
    static let rekeyAfterMessages: UInt64 = 1 << 60
    /// Neither side uses a key for a counter at or above this: 2^64 − 2^13 − 1.
    static let rejectAfterMessages: UInt64 = ReplayWindow.counterLimit
    /// The initiator of a session starts a new handshake when it sends on a key older than this.
    static let rekeyAfterTime = Interval.seconds(120)
    /// Neither side uses a key older than this.
    static let rejectAfterTime = Interval.seconds(180)
    /// How long handshakes are retried before queued packets are given up.
    static let rekeyAttemptTime = Interval.seconds(90)
    /// How long an initiation waits for its response before the next one.
    static let rekeyTimeout = Interval.seconds(5)
    /// The most that is randomly added to `rekeyTimeout`, so that two peers that started together drift apart.
    static let rekeyTimeoutJitter = Interval.milliseconds(333)
    /// How long after receiving data an empty message answers when nothing else was sent.
    static let keepaliveTimeout = Interval.seconds(10)
    /// All key material is wiped this long after the last session was made: three times the life of a key.
    static let zeroKeyMaterialAfter = Interval.seconds(3 * 180)
    /// How often initiations may be repeated: `rekeyAttemptTime` / `rekeyTimeout`, counted as Linux does.
    static let maximumHandshakeAttempts = 90 / 5
    /// A receiving initiator starts a new handshake when its key is older than this: the last moment at which a new key
    /// can be ready before the old one expires.
    static let lastMinuteRekeyAge = Interval.seconds(180 - 10 - 5)
    /// The least time between two initiations consumed from one peer (Linux: 50 a second).
    static let initiationInterval = Interval.milliseconds(20)
    /// How long a cookie is valid, and how often the secret behind it changes.
    static let cookieLifetime = Interval.seconds(120)
    /// How much earlier than its end a received cookie is no longer used: the time it may have travelled (Linux).
    static let cookieLatency = Interval.seconds(5)
    /// Plaintexts are padded to a multiple of this many bytes.
    static let paddingMultiple = 16
    /// Packets that wait for a session, per peer; the oldest goes when another comes (Linux).
    static let maximumStagedPackets = 128
    /// Handshake messages that wait to be processed (Linux).
    static let maximumQueuedHandshakes = 4096
    /// A queue this full means that the device is under load (Linux: an eighth).
    static let underLoadQueueLength = maximumQueuedHandshakes / 8
    /// How long the device stays under load after the queue was last that full (Linux).
    static let underLoadDuration = Interval.seconds(1)
    /// The most peers a device takes (Linux).
    static let maximumPeers = 1 << 20
    /// The traffic class of handshake messages: DSCP AF41 (Linux).
    static let handshakeTrafficClass: UInt8 = 0x88
}
