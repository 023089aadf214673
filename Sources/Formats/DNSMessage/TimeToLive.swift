/// How times to live are understood.
enum TimeToLive {
    /// A number with its highest bit set counts as 0 (RFC 2181 §8).
    static func effective(_ raw: UInt32) -> UInt32 { raw > 0x7FFF_FFFF ? 0 : raw }
}
