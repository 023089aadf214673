internal import ByteAccess

/// HChaCha20 (draft-irtf-cfrg-xchacha section 2.2): turns a key and the first 16 bytes of an extended nonce into a
/// subkey.
enum HChaCha20 {
    /// Writes the 32-byte subkey of `key` (32 bytes) and `nonce` (16 bytes) to `subkey`.
    static func deriveKey(from key: RawSpan, nonce: RawSpan, into subkey: inout MutableRawSpan) {
        precondition(
            key.byteCount == 32 && nonce.byteCount == 16 && subkey.byteCount == 32,
            "HChaCha20 takes 32 and 16 bytes and gives 32")
        // The rows of ChaCha's matrix: "expand 32-byte k", the key, and the nonce in place of counter and nonce.
        var a = SIMD4<UInt32>(0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574)
        var b = row(of: key, at: 0)
        var c = row(of: key, at: 16)
        var d = row(of: nonce, at: 0)
        for _ in 0..<10 {
            quarterRounds(&a, &b, &c, &d)
            // Turning the rows against each other brings the diagonals into columns, and back.
            (b, c, d) = (turned(b, by: 1), turned(c, by: 2), turned(d, by: 3))
            quarterRounds(&a, &b, &c, &d)
            (b, c, d) = (turned(b, by: 3), turned(c, by: 2), turned(d, by: 1))
        }
        // Unlike ChaCha20's, the result is not added to the input, and of it only the outer rows are given out.
        for column in 0..<4 {
            subkey.storeLittleEndian(a[column], at: column * 4)
            subkey.storeLittleEndian(d[column], at: 16 + column * 4)
        }
    }

    private static func row(of bytes: RawSpan, at offset: Int) -> SIMD4<UInt32> {
        SIMD4(
            bytes.littleEndianUInt32(at: offset), bytes.littleEndianUInt32(at: offset + 4),
            bytes.littleEndianUInt32(at: offset + 8), bytes.littleEndianUInt32(at: offset + 12))
    }

    /// RFC 8439's quarter round on all four columns.
    @inline(__always)
    private static func quarterRounds(
        _ a: inout SIMD4<UInt32>, _ b: inout SIMD4<UInt32>, _ c: inout SIMD4<UInt32>, _ d: inout SIMD4<UInt32>
    ) {
        a = a &+ b
        d = rotatedLeft(d ^ a, by: 16)
        c = c &+ d
        b = rotatedLeft(b ^ c, by: 12)
        a = a &+ b
        d = rotatedLeft(d ^ a, by: 8)
        c = c &+ d
        b = rotatedLeft(b ^ c, by: 7)
    }

    @inline(__always)
    private static func rotatedLeft(_ words: SIMD4<UInt32>, by count: UInt32) -> SIMD4<UInt32> {
        (words &<< SIMD4(repeating: count)) | (words &>> SIMD4(repeating: 32 - count))
    }

    /// The row moved left by `count` columns, those that fall out coming in again at the right.
    @inline(__always)
    private static func turned(_ row: SIMD4<UInt32>, by count: Int) -> SIMD4<UInt32> {
        SIMD4(row[count & 3], row[(count + 1) & 3], row[(count + 2) & 3], row[(count + 3) & 3])
    }
}
