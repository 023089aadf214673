internal import ByteAccess

/// BLAKE2s (RFC 7693): a hash of 1 to 32 bytes, with or without a key. It allocates nothing, and forgets everything
/// when it gives the hash out.
struct BLAKE2s: ~Copyable {
    /// The length of a block in bytes.
    static let blockLength = 64
    /// The greatest length of a hash and of a key in bytes.
    static let maximumLength = 32

    /// The chain value, RFC 7693's h.
    private var chain: SIMD8<UInt32>
    /// The last block, kept back because the final one is compressed differently.
    private var block = InlineArray<64, UInt8>(repeating: 0)
    /// How many bytes of `block` are filled.
    private var filled = 0
    /// How many bytes were compressed, RFC 7693's t.
    private var compressed: UInt64 = 0
    /// The length of the hash in bytes; zero once it was given out.
    private var outputLength: Int

    /// An unkeyed hash of `outputLength` bytes (1 to 32).
    init(outputLength: Int = maximumLength) {
        precondition((1...Self.maximumLength).contains(outputLength), "BLAKE2s gives 1 to 32 bytes")
        self.outputLength = outputLength
        chain = initialVector
        chain[0] ^= 0x0101_0000 ^ UInt32(outputLength)
    }

    /// A hash of `outputLength` bytes (1 to 32) keyed with `key` (at most 32 bytes; none is the unkeyed hash).
    init(key: RawSpan, outputLength: Int) {
        precondition(key.byteCount <= Self.maximumLength, "BLAKE2s takes a key of at most 32 bytes")
        self.init(outputLength: outputLength)
        if key.isEmpty { return }
        chain[0] ^= UInt32(key.byteCount) << 8
        append(key)
        filled = Self.blockLength
    }

    /// Hashes `bytes` after what came before.
    mutating func update(_ bytes: RawSpan) {
        let space = Self.blockLength - filled
        if bytes.byteCount <= space {
            append(bytes)
            return
        }
        var offset = 0
        if filled > 0 {
            append(bytes.extracting(first: space))
            compressBlock()
            offset = space
        }
        while bytes.byteCount - offset > Self.blockLength {
            compressed += UInt64(Self.blockLength)
            compress(&chain, bytes, at: offset, total: compressed, isFinal: false)
            offset += Self.blockLength
        }
        append(bytes.extracting(droppingFirst: offset))
    }

    /// Writes the hash to `output`, which is as long as the hash is to be, and overwrites the state. Call it once.
    mutating func finalize(into output: inout MutableRawSpan) {
        precondition(output.byteCount == outputLength, "the output is not as long as the hash")
        compressed += UInt64(filled)
        var span = block.mutableSpan
        var bytes = span.mutableOctets
        bytes.zero(from: filled, count: Self.blockLength - filled)
        compress(&chain, bytes.bytes, at: 0, total: compressed, isFinal: true)
        if outputLength == Self.maximumLength {
            for index in 0..<8 { output.storeLittleEndian(chain[index], at: index * 4) }
        } else {
            for index in 0..<outputLength {
                output.store(UInt8(truncatingIfNeeded: chain[index / 4] >> UInt32(index % 4 * 8)), at: index)
            }
        }
        // All zeros is a valid value of every stored property.
        unsafe withUnsafeMutableBytes(of: &self) { unsafe overwrite($0) }
    }

    /// Adds bytes that fit to the last block.
    private mutating func append(_ bytes: RawSpan) {
        var span = block.mutableSpan
        var target = span.mutableOctets
        target.copy(bytes, to: filled)
        filled += bytes.byteCount
    }

    /// Compresses the last block, which is full and not the final one.
    private mutating func compressBlock() {
        compressed += UInt64(Self.blockLength)
        compress(&chain, block.span.octets, at: 0, total: compressed, isFinal: false)
        filled = 0
    }
}

extension BLAKE2s {
    /// Writes the 32-byte hash of `first` followed by `second` to `output`, which may not overlap them.
    static func hash(_ first: RawSpan, _ second: RawSpan = RawSpan(), into output: inout MutableRawSpan) {
        var hash = BLAKE2s()
        hash.update(first)
        hash.update(second)
        hash.finalize(into: &output)
    }

    /// Replaces the 32 bytes of `state` with the hash of themselves followed by `bytes`: Noise's MixHash.
    static func mix(_ bytes: RawSpan, into state: inout MutableRawSpan) {
        var hash = BLAKE2s()
        hash.update(state.bytes)
        hash.update(bytes)
        hash.finalize(into: &state)
    }
}
