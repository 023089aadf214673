internal import ByteAccess

/// Watches what a client sends before the handshake is done: how much it is, and how long its ClientHellos say that they are. OpenSSL
/// allocates what is said, up to 128 KiB, before anything of it has come: a few bytes on each of many connections would take the memory
/// of a whole provider.
struct HandshakeBound {
    /// The most that is taken, in bytes, and the longest ClientHello. Those of browsers with keys for post-quantum groups have about
    /// 2,000, and who is asked for another key sends two (RFC 8446 §4.1.4).
    static let maximumByteCount = 16_384

    /// A record's header: type, version and length (RFC 8446 §5.1).
    private var header = InlineArray<5, UInt8>(repeating: 0)
    private var headerCount = 0
    /// How much of the record's content is still to come.
    private var recordCount = 0
    /// The header of a handshake message: type and length (RFC 8446 §4). Records may cut it.
    private var messageHeader: UInt32 = 0
    private var messageHeaderCount = 0
    /// How much of the message is still to come.
    private var messageCount = 0
    /// How many bytes have come.
    private(set) var byteCount = 0

    /// Looks at the next bytes of the stream. False when they are not to be taken.
    ///
    /// - Parameter isReadable: False once records for the handshake may be encrypted, and ClientHellos are refused whatever they say.
    mutating func admits(_ bytes: RawSpan, isReadable: Bool) -> Bool {
        byteCount += bytes.byteCount
        guard isReadable else { return true }
        var offset = 0
        while offset < bytes.byteCount {
            guard recordCount > 0 else {
                takeHeader(bytes.uint8(at: offset))
                offset += 1
                continue
            }
            let count = min(recordCount, bytes.byteCount - offset)
            // What is no handshake is OpenSSL's to judge.
            let handshake: UInt8 = 22
            if header[0] == handshake {
                guard admits(content: bytes.extracting(offset..<offset + count)) else { return false }
            }
            recordCount -= count
            offset += count
        }
        return true
    }

    private mutating func takeHeader(_ byte: UInt8) {
        header[headerCount] = byte
        headerCount += 1
        guard headerCount == 5 else { return }
        headerCount = 0
        recordCount = Int(header[3]) << 8 | Int(header[4])
    }

    private mutating func admits(content: RawSpan) -> Bool {
        var offset = 0
        while offset < content.byteCount {
            if messageCount > 0 {
                let count = min(messageCount, content.byteCount - offset)
                messageCount -= count
                offset += count
                continue
            }
            messageHeader = messageHeader << 8 | UInt32(content.uint8(at: offset))
            messageHeaderCount += 1
            offset += 1
            if messageHeaderCount == 4 {
                messageHeaderCount = 0
                messageCount = Int(messageHeader & 0xFF_FFFF)
                let clientHello: UInt32 = 1
                if messageHeader >> 24 == clientHello, messageCount > Self.maximumByteCount { return false }
            }
        }
        return true
    }
}
