extension RawSpan {
    /// The 16-bit integer in little-endian byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public func littleEndianUInt16(at offset: Int) -> UInt16 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        UInt16(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// The 32-bit integer in little-endian byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public func littleEndianUInt32(at offset: Int) -> UInt32 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        UInt32(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// The 64-bit integer in little-endian byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public func littleEndianUInt64(at offset: Int) -> UInt64 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}

extension MutableRawSpan {
    /// Writes a 16-bit integer in little-endian byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func storeLittleEndian(_ value: UInt16, at offset: Int) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt16.self)
    }

    /// Writes a 32-bit integer in little-endian byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func storeLittleEndian(_ value: UInt32, at offset: Int) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt32.self)
    }

    /// Writes a 64-bit integer in little-endian byte order at `offset`, which need not be aligned.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func storeLittleEndian(_ value: UInt64, at offset: Int) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt64.self)
    }
}
