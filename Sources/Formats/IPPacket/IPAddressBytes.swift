public import ByteAccess

extension RawSpan {
    /// The IPv4 address in the four bytes at `offset`. Traps when out of bounds.
    @_alwaysEmitIntoClient @inline(__always)
    public func ipv4Address(at offset: Int) -> IPv4Address {
        IPv4Address(bits: bigEndianUInt32(at: offset))
    }

    /// The IPv6 address in the sixteen bytes at `offset`. Traps when out of bounds.
    @_alwaysEmitIntoClient @inline(__always)
    public func ipv6Address(at offset: Int) -> IPv6Address {
        IPv6Address(high: bigEndianUInt64(at: offset), low: bigEndianUInt64(at: offset + 8))
    }
}

extension MutableRawSpan {
    /// Writes the four bytes of `address` at `offset`. Traps when out of bounds.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func store(_ address: IPv4Address, at offset: Int) {
        storeBigEndian(address.bits, at: offset)
    }

    /// Writes the sixteen bytes of `address` at `offset`. Traps when out of bounds.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func store(_ address: IPv6Address, at offset: Int) {
        storeBigEndian(address.high, at: offset)
        storeBigEndian(address.low, at: offset + 8)
    }

    /// Writes the four or sixteen bytes of `address` at `offset`. Traps when out of bounds.
    @_alwaysEmitIntoClient @inline(__always)
    public mutating func store(_ address: IPAddress, at offset: Int) {
        switch address {
        case .v4(let address): store(address, at: offset)
        case .v6(let address): store(address, at: offset)
        }
    }
}
