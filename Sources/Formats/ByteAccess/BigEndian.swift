extension RawSpan {
    /// The byte at `offset`. Traps when out of bounds, as every accessor here does: callers check lengths first.
    @_alwaysEmitIntoClient @inline(__always)
    public func uint8(at offset: Int) -> UInt8 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// The 16-bit integer in network byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public func bigEndianUInt16(at offset: Int) -> UInt16 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        UInt16(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// The 32-bit integer in network byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public func bigEndianUInt32(at offset: Int) -> UInt32 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        UInt32(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// The 64-bit integer in network byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public func bigEndianUInt64(at offset: Int) -> UInt64 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        UInt64(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}

extension MutableRawSpan {
    /// Writes one byte at `offset`. Traps when out of bounds, as every accessor here does: callers check lengths first.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func store(_ value: UInt8, at offset: Int) {
        storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
    }

    /// Writes a 16-bit integer in network byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func storeBigEndian(_ value: UInt16, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt16.self)
    }

    /// Writes a 32-bit integer in network byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func storeBigEndian(_ value: UInt32, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
    }

    /// Writes a 64-bit integer in network byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func storeBigEndian(_ value: UInt64, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt64.self)
    }
}
