internal import ByteAccess

/// The memory of a cache: blocks for the bytes of answers, entries that describe them, and places to find entries by their hashes. It is
/// allocated once; what is not used yet is not touched, so that it takes no memory yet.
///
/// Sending it to another thread is sound: it is uniquely owned, and nothing but its owner reaches the bytes.
@safe
struct CacheMemory: ~Copyable, @unchecked Sendable {
    /// The bytes of an answer that a block holds, and the number of the next block behind them.
    static var blockByteCount: Int { 128 }
    static var blockPayload: Int { 124 }

    let blockCount: Int
    let entryCapacity: Int
    /// A power of two.
    let placeCount: Int
    private let storage: UnsafeMutableRawBufferPointer

    /// How many bytes a memory of so many blocks takes, and of what.
    private static func layout(blocks: Int) -> (entries: Int, places: Int, byteCount: Int) {
        let entries = blocks * 3 / 4
        let places = blocks == 0 ? 0 : entries.nextPowerOfTwo
        return (entries, places, blocks * blockByteCount + entries * CacheEntry.byteCount + places * 4)
    }

    /// The most blocks that fit into so many bytes; 0 when there are too few for anything.
    private static func blocks(within byteCount: Int) -> Int {
        var (low, high) = (0, min(byteCount / blockByteCount, 1 << 30))
        while low < high {
            let middle = (low + high + 1) / 2
            if layout(blocks: middle).byteCount <= byteCount { low = middle } else { high = middle - 1 }
        }
        return low >= 8 ? low : 0
    }

    /// Memory that takes `byteLimit` bytes at most.
    init(byteLimit: Int) {
        blockCount = Self.blocks(within: byteLimit)
        let layout = Self.layout(blocks: blockCount)
        (entryCapacity, placeCount) = (layout.entries, layout.places)
        unsafe storage = UnsafeMutableRawBufferPointer.allocate(byteCount: layout.byteCount, alignment: 16)
        for place in 0..<placeCount { self[place: place] = CacheEntry.none }
    }

    deinit {
        // The allocation is this value's own and goes away here.
        unsafe storage.deallocate()
    }

    /// The number of bytes that are allocated.
    var byteCount: Int { unsafe storage.count }

    private var entriesStart: Int { blockCount * Self.blockByteCount }
    private var placesStart: Int { entriesStart + entryCapacity * CacheEntry.byteCount }

    /// An entry; it is read only where one was written.
    subscript(entry index: UInt32) -> CacheEntry {
        get {
            precondition(Int(index) < entryCapacity)
            // In bounds by the above; an entry has no invalid bits where one was written, and its place is aligned: blocks are 128 bytes.
            return unsafe storage.load(
                fromByteOffset: entriesStart + Int(index) * CacheEntry.byteCount, as: CacheEntry.self)
        }
        set {
            precondition(Int(index) < entryCapacity)
            // In bounds by the above.
            unsafe storage.storeBytes(
                of: newValue, toByteOffset: entriesStart + Int(index) * CacheEntry.byteCount, as: CacheEntry.self)
        }
    }

    /// The first entry whose hash leads to a place.
    subscript(place index: Int) -> UInt32 {
        get {
            precondition(index >= 0 && index < placeCount)
            // In bounds by the above, written by `init`.
            return unsafe storage.load(fromByteOffset: placesStart + 4 * index, as: UInt32.self)
        }
        set {
            precondition(index >= 0 && index < placeCount)
            // In bounds by the above.
            unsafe storage.storeBytes(of: newValue, toByteOffset: placesStart + 4 * index, as: UInt32.self)
        }
    }

    /// The block that comes behind a block.
    subscript(nextOf block: UInt32) -> UInt32 {
        get {
            precondition(Int(block) < blockCount)
            // In bounds by the above; read only where one was written.
            return unsafe storage.load(
                fromByteOffset: Int(block) * Self.blockByteCount + Self.blockPayload, as: UInt32.self)
        }
        set {
            precondition(Int(block) < blockCount)
            // In bounds by the above.
            unsafe storage.storeBytes(
                of: newValue, toByteOffset: Int(block) * Self.blockByteCount + Self.blockPayload, as: UInt32.self)
        }
    }

    /// The first `count` bytes of a block, 124 at most.
    @_lifetime(borrow self)
    @inline(__always)
    func bytes(ofBlock block: UInt32, count: Int) -> RawSpan {
        precondition(Int(block) < blockCount && count <= Self.blockPayload)
        let start = Int(block) * Self.blockByteCount
        // In bounds by the above; the allocation lives and stays in place as long as `self`.
        return unsafe _overrideLifetime(
            RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: storage[start..<start + count])), borrowing: self)
    }

    /// Copies the bytes of an answer to the start of `output`.
    @inline(__always)
    func copy(from firstBlock: UInt32, count: Int, to output: inout MutableRawSpan) {
        var (block, offset) = (firstBlock, 0)
        while offset < count {
            let length = min(Self.blockPayload, count - offset)
            output.copy(bytes(ofBlock: block, count: length), to: offset)
            offset += length
            if offset < count { block = self[nextOf: block] }
        }
    }

    /// Writes bytes of an answer to the start of a block, 124 at most.
    mutating func write(_ bytes: RawSpan, toBlock block: UInt32) {
        precondition(Int(block) < blockCount && bytes.byteCount <= Self.blockPayload)
        unsafe bytes.withUnsafeBytes { bytes in
            // In bounds by the above; what is written comes from elsewhere.
            unsafe UnsafeMutableRawBufferPointer(rebasing: storage[(Int(block) * Self.blockByteCount)...])
                .copyMemory(from: bytes)
        }
    }
}
