import ByteAccess
import Provider

/// A TAI64N label: seconds since 1970 plus 2^62 + 10, and nanoseconds, both big-endian (paper, section 5.1). Nanoseconds are
/// coarsened to multiples of 2^24, as Linux does, so that a stamp tells little about the sender's clock.
struct Timestamp: Comparable {
    static let byteCount = 12
    private static let epoch: UInt64 = 0x4000_0000_0000_000a
    private static let granularity: UInt32 = 1 << 24

    private var seconds: UInt64
    private var nanoseconds: UInt32

    init(_ time: WallClockTime) {
        seconds = Self.epoch &+ time.seconds
        nanoseconds = time.nanoseconds & ~(Self.granularity - 1)
    }

    /// The stamp in `bytes`, which must be 12 long.
    init(_ bytes: RawSpan) {
        seconds = bytes.bigEndianUInt64(at: 0)
        nanoseconds = bytes.bigEndianUInt32(at: 8)
    }

    /// The stamp for a message sent at `time` after one with the stamp `last`: later than that even when the wall clock
    /// stepped back, because the receiver takes only increasing stamps.
    init(_ time: WallClockTime, after last: Timestamp?) {
        self.init(time)
        guard let last, self <= last else { return }
        self = last
        nanoseconds += Self.granularity
        if nanoseconds >= 1_000_000_000 {
            seconds += 1
            nanoseconds = 0
        }
    }

    func store(into bytes: inout MutableRawSpan, at offset: Int) {
        bytes.storeBigEndian(seconds, at: offset)
        bytes.storeBigEndian(nanoseconds, at: offset + 8)
    }

    /// The order of the 12 bytes compared one by one.
    static func < (left: Timestamp, right: Timestamp) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}
