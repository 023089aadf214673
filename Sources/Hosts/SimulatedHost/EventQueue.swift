import Provider

/// What will happen in a simulation, earliest first; of two things at one time, what was added first.
struct EventQueue<Element> {
    private struct Entry {
        let time: Instant
        let order: UInt64
        let element: Element

        func precedes(_ other: Entry) -> Bool {
            (time, order) < (other.time, other.order)
        }
    }

    private var heap: [Entry] = []
    private var added: UInt64 = 0

    /// When the earliest element is due.
    var firstTime: Instant? { heap.first?.time }

    /// Adds something that happens at `time`.
    mutating func add(_ element: Element, at time: Instant) {
        heap.append(Entry(time: time, order: added, element: element))
        added += 1
        var position = heap.count - 1
        while position > 0, case let parent = (position - 1) / 2, heap[position].precedes(heap[parent]) {
            heap.swapAt(position, parent)
            position = parent
        }
    }

    /// Takes the earliest element if it is due at `now`.
    mutating func takeFirst(at now: Instant) -> Element? {
        guard let first = heap.first, first.time <= now else { return nil }
        let last = heap.removeLast()
        guard !heap.isEmpty else { return first.element }
        heap[0] = last
        var position = 0
        while true {
            var least = position
            for child in [2 * position + 1, 2 * position + 2] where child < heap.count {
                if heap[child].precedes(heap[least]) { least = child }
            }
            if least == position { return first.element }
            heap.swapAt(position, least)
            position = least
        }
    }
}
