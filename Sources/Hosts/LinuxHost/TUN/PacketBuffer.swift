/// Memory for one packet at a time, allocated once.
@safe struct PacketBuffer: ~Copyable {
    /// How many bytes fit.
    let capacity: Int
    // Owned by this value; all of it is initialized.
    private let storage: UnsafeMutableRawPointer

    /// A buffer of `capacity` bytes.
    init(capacity: Int) {
        precondition(capacity > 0, "a buffer without room")
        self.capacity = capacity
        unsafe storage = .allocate(byteCount: capacity, alignment: 64)
        unsafe storage.initializeMemory(as: UInt8.self, repeating: 0, count: capacity)
    }

    deinit {
        unsafe storage.deallocate()
    }

    /// The whole buffer, to be read and changed in place.
    @_lifetime(&self)
    mutating func bytes() -> MutableRawSpan {
        // The allocation is `capacity` bytes long, and nobody else reaches it while `self` is borrowed.
        let span = unsafe MutableRawSpan(_unsafeStart: storage, byteCount: capacity)
        return unsafe _overrideLifetime(span, mutating: &self)
    }
}
