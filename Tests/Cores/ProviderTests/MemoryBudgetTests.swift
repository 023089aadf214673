import Provider
import Testing

@Suite("Memory budget")
struct MemoryBudgetTests {
    @Test("Levels are entered at 75 and 90 % and left below 65 and 80 %")
    func hysteresis() {
        var budget = MemoryBudget(limit: 1000)
        // What is reported, and the level from then on.
        let steps: [(UInt64, MemoryLevel)] = [
            (0, .normal), (749, .normal), (750, .warning), (650, .warning), (649, .normal), (749, .normal),
            (899, .warning), (900, .critical), (800, .critical), (799, .warning), (899, .warning), (2000, .critical),
            (100, .normal), (950, .critical), (700, .warning), (950, .critical), (649, .normal),
        ]
        var before = MemoryLevel.normal
        for (used, level) in steps {
            #expect(budget.report(used: used) == (level == before ? nil : level), "\(used)")
            #expect(budget.level == level)
            before = level
        }
    }

    @Test("Nothing is left beyond the limit, and the largest numbers do not trap")
    func extremes() {
        var budget = MemoryBudget(limit: .max)
        #expect(budget.report(used: .max) == .critical)
        #expect(budget.available == 0)
        #expect(budget.report(used: 0) == .normal)
        #expect(budget.available == .max)
        var small = MemoryBudget(limit: 1)
        #expect(small.report(used: 5) == .critical)
        #expect(small.available == 0)
    }

    @Test("A worse level gives back what a better one does, and more")
    func shedding() {
        #expect(MemoryLevel.normal.shedding.isEmpty)
        #expect(MemoryLevel.critical.shedding.isStrictSuperset(of: MemoryLevel.warning.shedding))
        #expect(!MemoryLevel.warning.shedding.contains(.newFlows))
        #expect(MemoryLevel.critical.shedding.contains([.caches, .heldData, .newFlows]))
    }
}
