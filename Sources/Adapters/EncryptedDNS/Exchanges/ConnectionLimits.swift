public import Provider

/// How much and how long a connection may be.
public struct ConnectionLimits: Hashable, Sendable {
    /// The most exchanges under way at one time; a server may allow fewer.
    public var exchangeCount = 128
    /// The longest query in bytes.
    public var queryByteCount = 4096
    /// How many bytes may wait to be written before queries are refused.
    public var outgoingByteCount = 262_144
    /// The longest header of an HTTP answer, names and values, in bytes.
    public var headerByteCount = 16_384
    /// How many bytes of unfinished HTTP answers are kept, all streams together.
    public var bufferedByteCount = 262_144
    /// How long it may take to shake hands.
    public var handshakeInterval = Interval.milliseconds(2_500)
    /// How long a server may be silent before its connection is suspected: half of an exchange's time when that is less.
    public var patience = Interval.milliseconds(1_500)
    /// How long a connection is kept that nobody uses.
    public var idleInterval = Interval.seconds(30)

    /// The usual limits.
    public init() {}
}
