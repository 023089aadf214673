internal import ByteAccess

/// HMAC (RFC 2104) over BLAKE2s with 32 bytes of output: what the key derivation is built on.
enum HMACBLAKE2s {
    /// Writes the 32-byte code of `first` followed by `second` to `output`, which may not overlap them.
    ///
    /// - Parameter key: at most 64 bytes. (RFC 2104 hashes longer ones; nothing here has such.)
    static func authenticate(
        key: RawSpan, _ first: RawSpan, _ second: RawSpan = RawSpan(), into output: inout MutableRawSpan
    ) {
        precondition(key.byteCount <= BLAKE2s.blockLength, "an HMAC key longer than a block")
        var storage = InlineArray<64, UInt8>(repeating: 0x36)
        var span = storage.mutableSpan
        var pad = span.mutableOctets
        for offset in 0..<key.byteCount { pad.store(key.uint8(at: offset) ^ 0x36, at: offset) }
        var inner = BLAKE2s()
        inner.update(pad.bytes)
        inner.update(first)
        inner.update(second)
        inner.finalize(into: &output)

        // What was combined with the inner pad becomes combined with the outer one.
        for offset in 0..<BLAKE2s.blockLength { pad.store(pad.bytes.uint8(at: offset) ^ (0x36 ^ 0x5C), at: offset) }
        var outer = BLAKE2s()
        outer.update(pad.bytes)
        outer.update(output.bytes)
        outer.finalize(into: &output)
        wipe(&pad)
    }
}
