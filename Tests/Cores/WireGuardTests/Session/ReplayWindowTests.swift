import TestSupport
import Testing

@testable import WireGuard

/// What RFC 6479 asks of a window that remembers every counter it accepted.
private struct ReferenceWindow {
    var accepted: Set<UInt64> = []
    var greatest: UInt64?

    mutating func accept(_ counter: UInt64) -> Bool {
        // 2^64 - 2^13 - 1 from the WireGuard paper; 8,192 bits less one word of 64 from the RFC.
        guard counter < 18_446_744_073_709_543_423 else { return false }
        if let greatest, greatest > counter, greatest - counter > 8128 { return false }
        guard accepted.insert(counter).inserted else { return false }
        greatest = max(greatest ?? counter, counter)
        return true
    }
}

@Suite struct ReplayWindowTests {
    /// Counters and whether they are new, in the order in which they come.
    private func expect(_ steps: [(UInt64, Bool)], sourceLocation: SourceLocation = #_sourceLocation) {
        var window = ReplayWindow()
        for (index, (counter, isNew)) in steps.enumerated() {
            #expect(window.accept(counter) == isNew, "step \(index): \(counter)", sourceLocation: sourceLocation)
        }
    }

    @Test func `a counter is accepted once, in any order within the window`() {
        expect([
            (0, true), (0, false), (1, true), (1, false), (9, true), (8, true), (7, true), (7, false), (8, false),
            (9, false), (2, true), (0, false),
        ])
    }

    @Test func `the first counter may be any below the limit`() {
        expect([(123_456, true), (123_456, false), (123_455, true), (0, false)])
        expect([(8128, true), (0, true), (0, false), (1, true)])
        expect([(8129, true), (0, false), (1, true)])
    }

    @Test func `the window ends 8128 below the greatest counter`() {
        for greatest: UInt64 in [8128, 8129, 8191, 8192, 8193, 16_383, 16_384, 1 << 32, (1 << 32) + 63, 1 << 63] {
            expect([
                (greatest, true), (greatest - 8128, true), (greatest - 8128, false), (greatest - 8127, true),
                (greatest &- 8129, false), (greatest &- 8192, false), (greatest &- 8193, false), (greatest, false),
            ])
        }
    }

    @Test func `moving on by one leaves exactly one counter out`() {
        for start: UInt64 in 20_000..<20_064 {
            expect([(start, true), (start + 1, true), (start - 8128, false), (start - 8127, true)])
        }
    }

    @Test func `a jump forgets what it passes and nothing else`() {
        for jump: UInt64 in [1, 63, 64, 65, 127, 128, 4096, 8063, 8064, 8127, 8128, 8129, 8191, 8192, 8193, 1 << 40] {
            var window = ReplayWindow()
            var reference = ReferenceWindow()
            var wrong: [UInt64] = []
            for counter: UInt64 in 0..<9000 where !counter.isMultiple(of: 3) {
                if window.accept(counter) != reference.accept(counter) { wrong.append(counter) }
            }
            #expect(window.accept(8999 + jump) == reference.accept(8999 + jump))
            for counter in Array(0..<9000) + Array(jump..<jump + 9000) {
                if window.accept(counter) != reference.accept(counter) { wrong.append(counter) }
            }
            #expect(wrong.isEmpty, "after a jump of \(jump)")
        }
    }

    @Test func `counters from the limit on are never accepted, and do not move the window`() {
        let limit: UInt64 = 18_446_744_073_709_543_423
        expect([
            (limit, false), (limit + 1, false), (.max, false), (0, true), (limit - 1, true), (limit, false),
            (limit - 1, false), (limit - 2, true), (limit + 1, false), (limit + 2, false), (limit - 2, false),
            (limit - 3, true), (limit - 1 - 8128, true), (limit - 1 - 8129, false), (.max, false), (0, false),
        ])
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `random counters fare as with a window that forgets nothing`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var window = ReplayWindow()
        var reference = ReferenceWindow()
        var wrong: [UInt64] = []
        // The last seeds go over the limit, and then around to small counters.
        var around: UInt64 = seed < 6 ? 0 : 18_446_744_073_709_543_423 - 60_000
        for _ in 0..<50_000 {
            switch UInt8.random(in: 0..<100, using: &generator) {
            case 0: around &+= UInt64.random(in: 0...20_000, using: &generator) / (seed % 2 == 0 ? 1 : 100)
            case 1...60: around &+= 1
            default: break
            }
            let spread = UInt64.random(in: 0...9000, using: &generator)
            let counter = Bool.random(using: &generator) ? around : around - min(around, spread)
            if window.accept(counter) != reference.accept(counter) { wrong.append(counter) }
        }
        #expect(wrong.isEmpty)
    }
}
