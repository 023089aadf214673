internal import Glibc

/// Memory of a fixed size that begins as zeros. Pages of it that nobody writes to cost nothing.
@safe struct ZeroedBuffer: ~Copyable {
    /// How many bytes it has.
    let byteCount: Int
    // Owned by this value; all of it is initialized.
    private let storage: UnsafeMutableRawPointer

    /// A buffer of this many bytes.
    init(byteCount: Int) {
        precondition(byteCount > 0, "a buffer without room")
        self.byteCount = byteCount
        guard let memory = unsafe calloc(byteCount, 1) else { preconditionFailure("there is no memory") }
        unsafe storage = memory
    }

    deinit {
        // It came from `calloc`.
        unsafe free(storage)
    }

    /// The whole buffer.
    var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // The allocation is `byteCount` bytes long and lives as long as this value.
            let span = unsafe RawSpan(_unsafeStart: storage, byteCount: byteCount)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// The buffer from `offset` on, to be written to.
    @_lifetime(&self)
    @inline(__always)
    mutating func mutableBytes(from offset: Int = 0) -> MutableRawSpan {
        precondition(offset >= 0 && offset <= byteCount, "an offset outside of the buffer")
        // In bounds by the precondition. Nobody else reaches the bytes while `self` is borrowed.
        let span = unsafe MutableRawSpan(_unsafeStart: storage + offset, byteCount: byteCount - offset)
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Gives back the memory of the whole pages between two offsets. What was in it is not needed any more.
    func release(from start: Int, to end: Int) {
        precondition(start >= 0 && start <= end && end <= byteCount, "offsets outside of the buffer")
        let pageSize = sysconf(Int32(_SC_PAGESIZE))
        // In bounds by the precondition; the pages are this buffer's alone, and are zeros from now on.
        let address = unsafe Int(bitPattern: storage)
        let first = (address + start + pageSize - 1) / pageSize * pageSize
        let last = (address + end) / pageSize * pageSize
        if first < last { unsafe madvise(storage + (first - address), last - first, MADV_DONTNEED) }
    }

    /// Where the byte at `offset` is, for structures that the kernel follows. Valid as long as this value lives.
    @unsafe func address(of offset: Int) -> UnsafeMutableRawPointer {
        precondition(offset >= 0 && offset <= byteCount, "an offset outside of the buffer")
        // In bounds by the precondition.
        return unsafe storage + offset
    }
}
