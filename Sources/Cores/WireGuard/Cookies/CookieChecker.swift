import ByteAccess
import IPPacket
import Provider

/// The responder's side of denial-of-service protection (paper, sections 5.3 and 5.4.4): checks the two authentication
/// codes of handshake messages and makes cookies.
struct CookieChecker: ~Copyable {
    /// The key of mac1 in messages to us: HASH("mac1----" ‖ our public key).
    private let mac1Key: PublicHash
    /// The key that our cookie replies are sealed with: HASH("cookie--" ‖ our public key).
    private let cookieKey: PublicHash
    /// Rm: what cookies are made from.
    private var secret = SecretMemory(byteCount: 32)
    private var secretIsUsableUntil: Instant?

    /// A checker for messages to the device whose public key is `publicKey`.
    init(publicKey: PublicKey) {
        mac1Key = PublicHash("mac1----", before: publicKey.bytes)
        cookieKey = PublicHash("cookie--", before: publicKey.bytes)
    }

    /// True when the first authentication code of `message`, whose codes begin at `mac1`, proves that the sender knows our
    /// public key.
    func hasValidMAC1(_ message: RawSpan, mac1: Int) -> Bool {
        hasValidCode(message, at: mac1, key: mac1Key.bytes)
    }

    /// True when the second authentication code of `message` proves that the sender owns its address.
    mutating func hasValidMAC2(
        _ message: RawSpan, mac2: Int, from remote: Endpoint, at now: Instant,
        entropy: inout Entropy
    ) -> Bool {
        var cookie = SecretMemory(byteCount: MessageAuthenticationCode.byteCount)
        makeCookie(for: remote, at: now, entropy: &entropy, into: &cookie)
        return hasValidCode(message, at: mac2, key: cookie.bytes)
    }

    /// Writes the cookie reply to `message` (paper, section 5.4.7).
    ///
    /// - Parameter mac1: Where the codes of `message` begin.
    mutating func writeReply(
        to message: RawSpan, sender: UInt32, mac1: Int, from remote: Endpoint, at now: Instant,
        entropy: inout Entropy, into reply: inout MutableRawSpan,
        using cryptography: some Cryptography
    ) {
        reply.storeLittleEndian(MessageType.cookieReply.rawValue, at: 0)
        reply.storeLittleEndian(sender, at: CookieReplyLayout.receiver)
        for word in 0..<3 {
            reply.storeLittleEndian(entropy.next() as UInt64, at: CookieReplyLayout.nonce.lowerBound + word * 8)
        }
        var cookie = SecretMemory(byteCount: MessageAuthenticationCode.byteCount)
        makeCookie(for: remote, at: now, entropy: &entropy, into: &cookie)
        var nonce = InlineArray<24, UInt8>(repeating: 0)
        var nonceSpan = nonce.mutableSpan
        var nonceBytes = nonceSpan.mutableOctets
        nonceBytes.copy(reply.bytes.extracting(CookieReplyLayout.nonce), to: 0)
        var encrypted = reply.slice(CookieReplyLayout.encryptedCookie)
        XChaCha20Poly1305.seal(
            key: cookieKey.bytes, nonce: nonceBytes.bytes, plaintext: cookie.bytes,
            authenticatedData: message.extracting(mac1..<mac1 + MessageAuthenticationCode.byteCount),
            into: &encrypted, using: cryptography)
    }

    /// Cookie = MAC(Rm, address ‖ port), both as they stand in the packet. The port counts: hosts behind one address
    /// translator must not share a cookie.
    private mutating func makeCookie(
        for remote: Endpoint, at now: Instant, entropy: inout Entropy, into cookie: inout SecretMemory
    ) {
        if secretIsUsableUntil.map({ now >= $0 }) ?? true {
            secret.fill(from: &entropy)
            secretIsUsableUntil = now + ProtocolConstants.cookieLifetime
        }
        var input = InlineArray<18, UInt8>(repeating: 0)
        var inputSpan = input.mutableSpan
        var inputBytes = inputSpan.mutableOctets
        let length: Int
        switch remote.address {
        case .v4(let address):
            inputBytes.storeBigEndian(address.bits, at: 0)
            length = 4
        case .v6(let address):
            inputBytes.storeBigEndian(address.high, at: 0)
            inputBytes.storeBigEndian(address.low, at: 8)
            length = 16
        }
        inputBytes.storeBigEndian(remote.port, at: length)
        var output = cookie.mutableBytes
        MessageAuthenticationCode.authenticate(
            key: secret.bytes, inputBytes.bytes.extracting(0..<length + 2), into: &output)
    }

    /// Compares the code at `offset` with the one over everything before it.
    private func hasValidCode(_ message: RawSpan, at offset: Int, key: RawSpan) -> Bool {
        MessageAuthenticationCode.isValid(
            message.extracting(offset..<offset + MessageAuthenticationCode.byteCount),
            of: message.extracting(0..<offset), key: key)
    }
}
