internal import ByteAccess

/// The bytes that pairs of hexadecimal digits stand for; white space between them does not count.
public func hex(_ text: String) -> [UInt8] {
    let digits = text.filter { !$0.isWhitespace }.map { digit in
        guard let value = digit.hexDigitValue else { preconditionFailure("no hexadecimal digit: \(digit)") }
        return UInt8(value)
    }
    precondition(digits.count.isMultiple(of: 2), "half a byte")
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// What `body` writes into a buffer of `size` bytes; it returns how many.
public func written(size: Int = 65_535, _ body: (inout MutableRawSpan) throws -> Int) rethrows -> [UInt8] {
    var buffer = [UInt8](repeating: 0xEE, count: size)
    var span = buffer.mutableSpan
    var octets = span.mutableOctets
    let count = try body(&octets)
    return Array(buffer[..<count])
}

extension [UInt8] {
    /// The bytes of a span.
    public init(_ span: RawSpan) {
        // In one copy: what tests do at random does this millions of times, and is built without optimization.
        self = unsafe span.withUnsafeBytes { unsafe Array($0) }
    }

    /// The bytes that `write` leaves in a span of `count` bytes.
    public init(count: Int, write: (inout MutableRawSpan) -> Void) {
        self.init(repeating: 0xEE, count: count)
        edit(write)
    }

    /// The array's bytes.
    public var octets: RawSpan {
        @_lifetime(borrow self)
        get { span.octets }
    }

    /// Lets `body` change the bytes in place.
    public mutating func edit<Result, Failure: Error>(
        _ body: (inout MutableRawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var span = mutableSpan
        var octets = span.mutableOctets
        return try body(&octets)
    }
}
