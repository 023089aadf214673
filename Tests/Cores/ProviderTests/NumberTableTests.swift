import Provider
import Testing

/// The table of numbers against Swift's dictionary.
@Suite struct NumberTableTests {
    /// The generator of Steele, Lea and Flood, SplitMix64: the same numbers every time.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = state
            word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
            return word ^ word >> 31
        }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func `it holds what a dictionary holds, through changes in any order`(seed: UInt64) {
        var generator = Generator(state: seed)
        var (table, dictionary) = (NumberTable(), [UInt64: Int]())
        // Keys from a small range meet, and are used again; those of tokens have most of their bits high.
        let spread: UInt64 = seed % 2 == 0 ? 1 : 1 << 40
        for step in 0..<20_000 {
            let key = UInt64.random(in: 0..<600, using: &generator) &* spread
            // It grows, shrinks to nothing, and grows again.
            let grows = step / 5_000 % 2 == 0
            if Int.random(in: 0..<10, using: &generator) < (grows ? 6 : 3) {
                table.set(step, for: key)
                dictionary[key] = step
            } else {
                let (removed, expected) = (table.remove(key), dictionary.removeValue(forKey: key))
                #expect(removed == expected)
            }
            #expect(table.count == dictionary.count)
            let other = UInt64.random(in: 0..<600, using: &generator) &* spread
            #expect(table[other] == dictionary[other])
        }
        for key in 0..<600 { #expect(table[UInt64(key) &* spread] == dictionary[UInt64(key) &* spread]) }
        for (key, value) in dictionary {
            let removed = table.remove(key)
            #expect(removed == value)
        }
        let none = table.remove(0)
        #expect(table.count == 0 && table[0] == nil && none == nil)
    }

    @Test func `the greatest keys are as good as any`() {
        var table = NumberTable()
        for key in [UInt64.max, .max - 1, 0, 1, 1 << 63] as [UInt64] { table.set(Int(key >> 60), for: key) }
        #expect(table[.max] == 15 && table[.max - 1] == 15 && table[0] == 0 && table[1 << 63] == 8)
        table.set(3, for: .max)
        #expect(table[.max] == 3 && table.count == 5)
    }
}
