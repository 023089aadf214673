internal import ByteAccess

/// Watches the begin of a client's stream for how long its ClientHello says that it is. OpenSSL allocates what is said, up to 128 KiB,
/// before anything of it has come: a few bytes on each of many connections would take the memory of a whole provider.
struct ClientHelloBound {
    /// The longest ClientHello that is taken, in bytes. Those of browsers with keys for post-quantum groups have about 2,000.
    static let maximumByteCount = 16_384

    /// A record's header (RFC 8446 §5.1) and that of a handshake message (RFC 8446 §4).
    private static let headerCount = 9
    private var header = InlineArray<9, UInt8>(repeating: 0)
    private var count = 0

    /// Looks at the next bytes of the stream. False when they are not to be taken.
    mutating func admits(_ bytes: RawSpan) -> Bool {
        guard count < Self.headerCount else { return true }
        for offset in bytes.byteOffsets {
            header[count] = bytes.uint8(at: offset)
            count += 1
            if count == Self.headerCount { return isShort }
        }
        return true
    }

    /// True for what is no handshake message, too: that is OpenSSL's to refuse.
    private var isShort: Bool {
        let (handshake, clientHello): (UInt8, UInt8) = (22, 1)
        guard header[0] == handshake else { return true }
        // A header that is itself cut into records is nobody's.
        guard header[3] != 0 || header[4] >= 4 else { return false }
        return header[5] != clientHello
            || Int(header[6]) << 16 | Int(header[7]) << 8 | Int(header[8]) <= Self.maximumByteCount
    }
}
