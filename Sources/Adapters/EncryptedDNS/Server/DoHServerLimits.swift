/// How much a client of a DNS server by HTTPS may ask for.
public struct DoHServerLimits: Hashable, Sendable {
    /// The most requests under way at one time (RFC 9113 §5.1.2).
    public var streamCount = 100
    /// The longest header of a request, names and values, in bytes. A query in a path takes four thirds of its length.
    public var headerByteCount = 16_384
    /// How many bytes of unfinished requests and unsent answers are kept, all streams together, before requests are refused.
    public var bufferedByteCount = 262_144
    /// How many streams a client may reset at once (CVE-2023-44487).
    public var resetBurst: UInt64 = 200
    /// How many streams it may reset in a second in the long run.
    public var resetsPerSecond: UInt64 = 20

    /// The usual limits.
    public init() {}
}
