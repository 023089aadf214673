internal import ByteAccess
internal import Glibc

/// A queue of bytes with a fixed capacity, contiguous in memory. What is removed is overwritten, because control
/// connections carry keys.
@safe struct ByteBuffer: ~Copyable {
    /// How many bytes fit.
    let capacity: Int
    // Owned by this value; all of it is initialized.
    private let storage: UnsafeMutableRawPointer
    private var start = 0
    private var end = 0

    /// An empty buffer for `capacity` bytes.
    init(capacity: Int) {
        precondition(capacity > 0, "a buffer without room")
        self.capacity = capacity
        unsafe storage = .allocate(byteCount: capacity, alignment: 8)
        unsafe storage.initializeMemory(as: UInt8.self, repeating: 0, count: capacity)
    }

    deinit {
        // `explicit_bzero` is not optimized away.
        unsafe explicit_bzero(storage, capacity)
        unsafe storage.deallocate()
    }

    /// How many bytes it holds.
    var count: Int { end - start }

    /// How many more fit.
    var room: Int { capacity - count }

    /// The bytes that it holds.
    var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // In bounds: 0 ≤ start ≤ end ≤ capacity.
            let span = unsafe RawSpan(_unsafeStart: storage + start, byteCount: end - start)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Takes bytes off the front.
    mutating func removeFirst(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "more bytes than the buffer holds")
        wipe(start..<start + count)
        start += count
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Adds a copy of `bytes` to the end. False, and nothing is added, when they do not fit.
    mutating func append(_ bytes: RawSpan) -> Bool {
        guard bytes.byteCount <= room else { return false }
        if bytes.isEmpty { return true }
        makeTailFree(bytes.byteCount)
        unsafe bytes.withUnsafeBytes { source in
            // In bounds: makeTailFree left at least as many bytes behind the end.
            unsafe UnsafeMutableRawBufferPointer(start: storage + end, count: capacity - end).copyMemory(from: source)
        }
        end += bytes.byteCount
        return true
    }

    /// Lets `body` write to the whole free room and return how many bytes that were, or a negative number for none. The
    /// room must not be zero.
    mutating func append(_ body: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        makeTailFree(room)
        let count = unsafe body(UnsafeMutableRawBufferPointer(start: storage + end, count: capacity - end))
        if count > 0 {
            precondition(count <= capacity - end, "more bytes written than there was room")
            end += count
        }
        return count
    }

    /// Moves the bytes to the front unless `count` fit behind them already.
    private mutating func makeTailFree(_ count: Int) {
        if capacity - end >= count { return }
        let length = end - start
        // Both ranges lie in the storage; memmove takes overlapping ones.
        unsafe memmove(storage, storage + start, length)
        wipe(max(length, start)..<end)
        start = 0
        end = length
    }

    private func wipe(_ range: Range<Int>) {
        if range.isEmpty { return }
        // In bounds: callers name parts of what the buffer holds.
        unsafe explicit_bzero(storage + range.lowerBound, range.count)
    }
}
