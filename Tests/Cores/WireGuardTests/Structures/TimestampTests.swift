import ByteAccess
import Provider
import TestSupport
import Testing

@testable import WireGuard

@Suite("TAI64N time stamps")
struct TimestampTests {
    private func bytes(_ stamp: Timestamp) -> [UInt8] {
        [UInt8](count: 12) { stamp.store(into: &$0, at: 0) }
    }

    @Test("T1: bytes are 2^62 + 10 + seconds and nanoseconds, big-endian")
    func vectors() {
        // The first from https://cr.yp.to/libtai/tai64.html's definition: 1970-01-01 00:00:10 TAI is the epoch.
        #expect(
            bytes(Timestamp(WallClockTime(seconds: 0, nanoseconds: 0)))
                == hex("400000000000000a 00000000"))
        #expect(
            bytes(Timestamp(WallClockTime(seconds: 0x5000_0000, nanoseconds: 0)))
                == hex("400000005000000a 00000000"))
        #expect(
            bytes(Timestamp(WallClockTime(seconds: 1_750_000_000, nanoseconds: 999_999_999)))
                == hex("40000000684ee18a 3b000000"))
    }

    @Test(
        "T1: nanoseconds are multiples of 2^24",
        arguments: [
            (0, 0), (1, 0), (16_777_215, 0), (16_777_216, 16_777_216), (500_000_000, 486_539_264),
        ] as [(UInt32, UInt32)])
    func coarse(nanoseconds: UInt32, coarse: UInt32) {
        let stamp = bytes(Timestamp(WallClockTime(seconds: 0, nanoseconds: nanoseconds)))
        #expect(stamp[8...].reduce(0 as UInt32) { $0 << 8 | UInt32($1) } == coarse)
    }

    @Test("T1: parsing and storing are inverse, and the order is that of the bytes")
    func order() {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<2000 {
            var (left, right) = (generator.bytes(12), generator.bytes(12))
            if Bool.random(using: &generator) { right.replaceSubrange(0..<8, with: left[0..<8]) }
            if Bool.random(using: &generator) { left[0] = right[0] }
            let (first, second) = (Timestamp(left.octets), Timestamp(right.octets))
            #expect(bytes(first) == left)
            #expect((first < second) == left.lexicographicallyPrecedes(right))
        }
    }

    @Test("T4: a stamp is later than the one before, whatever the clock says")
    func after() {
        var last: Timestamp?
        for seconds in [100, 100, 100, 50, 0, 101, 101] as [UInt64] {
            for _ in 0..<100 {
                let stamp = Timestamp(WallClockTime(seconds: seconds, nanoseconds: 990_000_000), after: last)
                if let last { #expect(last < stamp) }
                #expect(bytes(stamp)[8...].reduce(0 as UInt32) { $0 << 8 | UInt32($1) } < 1_000_000_000)
                last = stamp
            }
        }
    }
}
