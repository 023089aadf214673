/// Heap memory for keys and the state they are derived from. It has one owner, cannot be copied, never moves, and is
/// overwritten with zeros before it is given back.
///
/// It can be a property of a class. There, read it through `withBytes` or pass it to a function that borrows it.
///
/// Sending it to another thread is sound: it is uniquely owned, and nothing but its owner reaches the bytes.
@safe
public struct SecretMemory: ~Copyable, @unchecked Sendable {
    private let storage: UnsafeMutableRawBufferPointer

    /// Allocates `byteCount` zero bytes, aligned for words.
    public init(byteCount: Int) {
        precondition(byteCount > 0, "secret memory of no bytes")
        unsafe storage = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 16)
        _ = unsafe storage.initializeMemory(as: UInt8.self, repeating: 0)
    }

    /// Allocates a copy of `bytes`.
    public init(copying bytes: RawSpan) {
        self.init(byteCount: bytes.byteCount)
        // Both are as long, and the new allocation overlaps nothing.
        unsafe bytes.withUnsafeBytes { unsafe storage.copyMemory(from: $0) }
    }

    deinit {
        // The allocation is this value's own and goes away here.
        unsafe overwrite(storage)
        unsafe storage.deallocate()
    }

    /// The number of bytes.
    public var byteCount: Int { unsafe storage.count }

    /// The bytes, for reading.
    public var bytes: RawSpan {
        @_lifetime(borrow self)
        get {
            // The allocation lives and stays in place as long as `self`, whose borrow bounds the span.
            unsafe _overrideLifetime(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(storage)), borrowing: self)
        }
    }

    /// The bytes, for reading and writing.
    public var mutableBytes: MutableRawSpan {
        @_lifetime(&self)
        mutating get {
            // The allocation lives and stays in place as long as `self`, whose exclusive access bounds the span.
            unsafe _overrideLifetime(MutableRawSpan(_unsafeBytes: storage), mutating: &self)
        }
    }

    /// Calls `body` with the bytes, for reading. Spans of a class's property cannot outlive the access to it: in a
    /// class this takes the place of `bytes`.
    public func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(bytes)
    }

    /// Calls `body` with the bytes, for reading and writing. In a class this takes the place of `mutableBytes`.
    public mutating func withMutableBytes<Result: ~Copyable, Failure: Error>(
        _ body: (inout MutableRawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var bytes = mutableBytes
        return try body(&bytes)
    }

    /// Overwrites every byte with zero.
    public mutating func wipe() {
        // In bounds: it is the whole allocation.
        unsafe overwrite(storage)
    }
}
