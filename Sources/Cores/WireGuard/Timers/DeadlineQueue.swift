import Provider

/// The earliest of many deadlines: a binary heap that knows where each owner's entry is. An owner whose deadline moved later
/// may leave its entry as it is: the heap learns of it only when the entry comes to the top, so that the data path, which
/// moves deadlines with every train, hardly ever touches the heap.
struct DeadlineQueue {
    private struct Entry {
        var deadline: Instant
        var owner: UInt32
    }

    private static let absent: Int32 = -1

    private var heap = ContiguousArray<Entry>()
    private var positions = ContiguousArray<Int32>()

    /// Notes that `owner` has something to do at `deadline`: now or at any earlier time that was noted before.
    mutating func note(_ deadline: Instant, for owner: UInt32) {
        while positions.count <= Int(owner) { positions.append(Self.absent) }
        let position = positions[Int(owner)]
        if position == Self.absent {
            heap.append(Entry(deadline: deadline, owner: owner))
            siftUp(heap.count - 1)
        } else if deadline < heap[Int(position)].deadline {
            heap[Int(position)].deadline = deadline
            siftUp(Int(position))
        }
    }

    /// Forgets `owner`.
    mutating func remove(_ owner: UInt32) {
        guard Int(owner) < positions.count, positions[Int(owner)] != Self.absent else { return }
        let position = Int(positions[Int(owner)])
        positions[Int(owner)] = Self.absent
        let last = heap.removeLast()
        guard position < heap.count else { return }
        heap[position] = last
        positions[Int(last.owner)] = Int32(position)
        siftUp(position)
        siftDown(Int(positions[Int(last.owner)]))
    }

    /// The owner with the earliest deadline, and that deadline. Entries that turn out to be early are moved first.
    ///
    /// - Parameter actual: The deadline that an owner really has; nil when it has none.
    mutating func first(actual: (UInt32) -> Instant?) -> (owner: UInt32, deadline: Instant)? {
        while let top = heap.first {
            guard let deadline = actual(top.owner) else {
                remove(top.owner)
                continue
            }
            if deadline == top.deadline { return (top.owner, deadline) }
            heap[0].deadline = deadline
            siftDown(0)
            if heap[0].owner == top.owner { return (top.owner, deadline) }
        }
        return nil
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
        positions[Int(entry.owner)] = Int32(position)
    }
}
