extension MutableRawSpan {
    /// Copies all of `source` to `offset`. The two must not overlap. Traps when it does not fit.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func copy(_ source: RawSpan, to offset: Int) {
        precondition(offset >= 0 && source.byteCount <= byteCount - offset, "copy beyond the end of a span")
        if source.isEmpty { return }
        unsafe withUnsafeMutableBytes { destination in
            unsafe source.withUnsafeBytes { source in
                // In bounds by the precondition above; neither buffer is empty, so both have a base address.
                unsafe UnsafeMutableRawBufferPointer(rebasing: destination[offset...]).copyMemory(from: source)
            }
        }
    }

    /// Sets `count` bytes from `offset` to zero. Traps when out of bounds.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func zero(from offset: Int, count: Int) {
        precondition(offset >= 0 && count >= 0 && count <= byteCount - offset, "zeroing beyond the end of a span")
        unsafe withUnsafeMutableBytes { destination in
            // In bounds by the precondition above.
            _ = unsafe UnsafeMutableRawBufferPointer(rebasing: destination[offset..<offset + count])
                .initializeMemory(as: UInt8.self, repeating: 0)
        }
    }
}

extension RawSpan {
    /// True when both spans hold the same bytes. Not for secrets: it stops at the first difference.
    @_alwaysEmitIntoClient
    public func hasSameBytes(as other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        var offset = 0
        while offset + 8 <= byteCount {
            guard littleEndianUInt64(at: offset) == other.littleEndianUInt64(at: offset) else { return false }
            offset += 8
        }
        while offset < byteCount {
            guard uint8(at: offset) == other.uint8(at: offset) else { return false }
            offset += 1
        }
        return true
    }
}

extension MutableRawSpan {
    /// The bytes of `range`, to be changed in place while this span is not used. Traps when out of bounds.
    @_alwaysEmitIntoClient @inline(__always)
    @_lifetime(&self)
    public mutating func slice(_ range: Range<Int>) -> MutableRawSpan {
        _mutatingExtracting(range)
    }
}

extension [UInt8] {
    /// The bytes of a span.
    @inlinable
    public init(copying bytes: RawSpan) {
        self.init()
        // Room that is left uninitialized costs more: the standard library has no specialized code for it.
        reserveCapacity(bytes.byteCount)
        // Every bit pattern is a byte.
        unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }
}
