import ByteAccess
import Provider

/// The initiator's side of denial-of-service protection (paper, section 5.4.4): authenticates handshake messages to one
/// peer and keeps the cookie that the peer replied with.
struct CookieJar: ~Copyable {
    /// The first code of the message sent last, while a cookie reply to it may come: it is the reply's associated data.
    private var lastMAC1 = InlineArray<16, UInt8>(repeating: 0)
    private var awaitsReply = false
    private var cookie = SecretMemory(byteCount: MessageAuthenticationCode.byteCount)
    private var cookieIsUsableUntil: Instant?

    /// Writes both authentication codes of `message`, which begin at `mac1`.
    mutating func authenticate(
        _ message: inout MutableRawSpan, mac1: Int, recipient: PublicKey, at now: Instant
    ) {
        let key = PublicHash("mac1----", before: recipient.bytes)
        var code = InlineArray<16, UInt8>(repeating: 0)
        var codeSpan = code.mutableSpan
        var codeBytes = codeSpan.mutableOctets
        MessageAuthenticationCode.authenticate(key: key.bytes, message.bytes.extracting(0..<mac1), into: &codeBytes)
        message.copy(codeBytes.bytes, to: mac1)
        var lastSpan = lastMAC1.mutableSpan
        var lastBytes = lastSpan.mutableOctets
        lastBytes.copy(codeBytes.bytes, to: 0)
        awaitsReply = true

        let mac2 = mac1 + MessageAuthenticationCode.byteCount
        if let cookieIsUsableUntil, now < cookieIsUsableUntil {
            MessageAuthenticationCode.authenticate(
                key: cookie.bytes, message.bytes.extracting(0..<mac2), into: &codeBytes)
            message.copy(codeBytes.bytes, to: mac2)
        } else {
            message.zero(from: mac2, count: MessageAuthenticationCode.byteCount)
        }
    }

    /// Takes the cookie out of a reply. One reply is taken for each message sent; the next message uses the cookie.
    ///
    /// - Returns: False when no reply is awaited or this one does not answer the message sent last.
    mutating func readReply(
        _ reply: RawSpan, from sender: PublicKey, at now: Instant, using cryptography: some Cryptography
    ) -> Bool {
        guard awaitsReply else { return false }
        let key = PublicHash("cookie--", before: sender.bytes)
        var opened = SecretMemory(byteCount: MessageAuthenticationCode.byteCount)
        var openedBytes = opened.mutableBytes
        guard
            XChaCha20Poly1305.open(
                key: key.bytes, nonce: reply.extracting(CookieReplyLayout.nonce),
                ciphertext: reply.extracting(CookieReplyLayout.encryptedCookie),
                authenticatedData: lastMAC1.span.octets, into: &openedBytes, using: cryptography)
        else { return false }
        var cookieBytes = cookie.mutableBytes
        cookieBytes.copy(openedBytes.bytes, to: 0)
        let usable = Interval(
            nanoseconds: ProtocolConstants.cookieLifetime.nanoseconds - ProtocolConstants.cookieLatency.nanoseconds)
        cookieIsUsableUntil = now + usable
        awaitsReply = false
        return true
    }
}
