/// Overwrites `bytes` with zeros, in a way that the optimizer cannot leave out because nobody reads them afterwards.
public func wipe(_ bytes: inout MutableRawSpan) {
    unsafe bytes.withUnsafeMutableBytes { unsafe overwrite($0) }
}

/// Overwrites 16 KiB of stack below the caller's frame: what a finished handshake's calls left in their frames, key
/// material in the compiler's temporaries included. Call it from the function that called them.
@inline(never)
public func scrubStack() {
    var frame = InlineArray<2048, UInt64>(repeating: 0)
    var words = frame.mutableSpan
    unsafe words.withUnsafeMutableBytes { unsafe keepWrites(to: $0) }
}

/// Zeroes memory for good.
@inline(never)
func overwrite(_ bytes: UnsafeMutableRawBufferPointer) {
    _ = unsafe bytes.initializeMemory(as: UInt8.self, repeating: 0)
    unsafe keepWrites(to: bytes)
}

/// Does nothing with the memory, but the optimizer does not know: it is told to look into neither this function nor
/// what it might read, so that all writes before the call have to happen.
@inline(never) @_optimize(none)
private func keepWrites(to bytes: UnsafeMutableRawBufferPointer) {}
