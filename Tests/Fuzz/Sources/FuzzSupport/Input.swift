/// Gives `body` the bytes that libFuzzer hands to `LLVMFuzzerTestOneInput`, and returns what that function must return.
public func withInput(_ start: UnsafePointer<UInt8>?, _ count: Int, _ body: (RawSpan) -> Void) -> CInt {
    // libFuzzer keeps `count` bytes at `start` for the length of the call.
    let buffer = unsafe UnsafeRawBufferPointer(start: start, count: count)
    unsafe body(buffer.bytes)
    return 0
}

/// Ends the run with a report when a promise is broken. Not an assertion: it holds in release builds too.
@inline(__always)
public func require(
    _ promise: @autoclosure () -> Bool, _ what: StaticString, file: StaticString = #file, line: UInt = #line
) {
    if !promise() { fatalError("\(what)", file: file, line: line) }
}

extension [UInt8] {
    /// A copy of `bytes`, in memory of its own size, so that the address sanitizer sees every step beyond it.
    public init(copying bytes: RawSpan) {
        // Every bit pattern is a byte.
        self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }

    /// Lets `body` read the bytes.
    public func read<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // Bytes have no padding.
        try unsafe body(span.bytes)
    }

    /// Lets `body` change the bytes in place.
    public mutating func edit<Result>(_ body: (inout MutableRawSpan) throws -> Result) rethrows -> Result {
        var elements = mutableSpan
        // Every bit pattern is a byte.
        var bytes = unsafe elements.mutableBytes
        return try body(&bytes)
    }
}
