internal import Provider

/// The earliest of many deadlines, one for each owner: a binary heap that knows where each owner's is.
struct DeadlineHeap: Sendable {
    private struct Entry {
        var deadline: Instant
        var owner: Int
    }

    private static let absent: Int32 = -1

    private var heap: [Entry] = []
    private var positions: [Int32] = []

    /// The owner with the earliest deadline, and that deadline.
    var first: (owner: Int, deadline: Instant)? { heap.first.map { ($0.owner, $0.deadline) } }

    /// Sets the owner's deadline in place of the one it had.
    mutating func set(_ deadline: Instant, for owner: Int) {
        while positions.count <= owner { positions.append(Self.absent) }
        let position = positions[owner]
        guard position == Self.absent else {
            heap[Int(position)].deadline = deadline
            siftUp(Int(position))
            siftDown(Int(positions[owner]))
            return
        }
        heap.append(Entry(deadline: deadline, owner: owner))
        siftUp(heap.count - 1)
    }

    /// The owner has no deadline any more.
    mutating func remove(_ owner: Int) {
        guard owner < positions.count, positions[owner] != Self.absent else { return }
        let position = Int(positions[owner])
        positions[owner] = Self.absent
        let last = heap.removeLast()
        guard position < heap.count else { return }
        place(last, at: position)
        siftUp(position)
        siftDown(Int(positions[last.owner]))
    }

    private mutating func siftUp(_ start: Int) {
        let entry = heap[start]
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard entry.deadline < heap[parent].deadline else { break }
            place(heap[parent], at: position)
            position = parent
        }
        place(entry, at: position)
    }

    private mutating func siftDown(_ start: Int) {
        let entry = heap[start]
        var position = start
        while true {
            var child = 2 * position + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].deadline < heap[child].deadline { child += 1 }
            guard heap[child].deadline < entry.deadline else { break }
            place(heap[child], at: position)
            position = child
        }
        place(entry, at: position)
    }

    private mutating func place(_ entry: Entry, at position: Int) {
        heap[position] = entry
        positions[entry.owner] = Int32(truncatingIfNeeded: position)
    }
}
