import Provider
import TestSupport
import Testing

@testable import WireGuard

@Suite("Deadline queue")
struct DeadlineQueueTests {
    /// The deadlines of owners as a device knows them, and the queue beside them.
    private struct Model {
        var queue = DeadlineQueue()
        var deadlines: [UInt32: Instant] = [:]

        /// What the queue should say, by looking at every owner.
        var earliest: Instant? { deadlines.values.min() }

        mutating func first() -> (owner: UInt32, deadline: Instant)? {
            let deadlines = deadlines
            return queue.first { deadlines[$0] }
        }

        /// Sets a deadline as a device does: it tells the queue, which may find out about later ones by itself.
        mutating func set(_ deadline: Instant, for owner: UInt32) {
            deadlines[owner] = deadline
            queue.note(deadline, for: owner)
        }
    }

    @Test("The earliest deadline is the one that a look at all owners finds", arguments: 1...20 as ClosedRange<UInt64>)
    func againstReference(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var model = Model()
        for _ in 0..<3000 {
            let owner = UInt32.random(in: 0..<40, using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                model.set(Instant(nanoseconds: UInt64.random(in: 0..<500, using: &generator)), for: owner)
            case 5:
                model.deadlines[owner] = nil
                model.queue.remove(owner)
            case 6:
                // An owner may lose its deadline, or move it later, without a word.
                model.deadlines[owner] = nil
            case 7:
                if let old = model.deadlines[owner] { model.deadlines[owner] = old + Interval(nanoseconds: 7) }
            default:
                let first = model.first()
                #expect(first?.deadline == model.earliest)
                if let first { #expect(model.deadlines[first.owner] == first.deadline) }
            }
        }
        // Emptied in order.
        var last = Instant(nanoseconds: 0)
        while let first = model.first() {
            #expect(first.deadline >= last)
            last = first.deadline
            model.deadlines[first.owner] = nil
            model.queue.remove(first.owner)
        }
        #expect(model.deadlines.isEmpty)
    }

    @Test("Removing an owner that is not there does nothing")
    func removeAbsent() {
        var queue = DeadlineQueue()
        queue.remove(5)
        queue.note(Instant(nanoseconds: 3), for: 1)
        queue.remove(5)
        queue.remove(0)
        let first = queue.first { _ in Instant(nanoseconds: 3) }
        #expect(first?.owner == 1)
    }
}
