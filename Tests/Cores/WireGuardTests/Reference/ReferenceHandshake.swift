/// A static or ephemeral key pair of the reference.
struct ReferenceKeyPair {
    let privateKey: [UInt8]
    let publicKey: [UInt8]

    init(privateKey: [UInt8]) {
        self.privateKey = privateKey
        publicKey = Reference.publicKey(of: privateKey)
    }

    /// A key pair made of random bytes.
    init(using generator: inout some RandomNumberGenerator) {
        self.init(privateKey: (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}

/// The chaining key and the transcript hash (paper, section 5.4.1).
private struct Transcript {
    var chain = Reference.hash(Array("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s".utf8))
    var hash: [UInt8]

    init(responder: [UInt8]) {
        hash = Reference.hash(
            Reference.hash(chain, Array("WireGuard v1 zx2c4 Jason@zx2c4.com".utf8)), responder)
    }

    mutating func mix(_ data: [UInt8]) {
        hash = Reference.hash(hash, data)
    }

    mutating func key(_ input: [UInt8]) -> [UInt8] {
        let outputs = Reference.kdf(2, chain, input)
        chain = outputs[0]
        return outputs[1]
    }

    mutating func seal(_ key: [UInt8], _ plaintext: [UInt8]) -> [UInt8] {
        let sealed = Reference.seal(key, 0, plaintext, hash)
        mix(sealed)
        return sealed
    }

    mutating func open(_ key: [UInt8], _ sealed: ArraySlice<UInt8>) -> [UInt8]? {
        let plaintext = Reference.open(key, 0, Array(sealed), hash)
        mix(Array(sealed))
        return plaintext
    }

    /// The response's part that both sides have in common: ephemeral key, two secrets, preshared key.
    mutating func continueWithResponse(
        ephemeral: [UInt8], _ first: [UInt8], _ second: [UInt8], presharedKey: [UInt8]
    ) -> [UInt8] {
        chain = Reference.kdf(1, chain, ephemeral)[0]
        mix(ephemeral)
        chain = Reference.kdf(1, chain, first)[0]
        chain = Reference.kdf(1, chain, second)[0]
        let outputs = Reference.kdf(3, chain, presharedKey)
        chain = outputs[0]
        mix(outputs[1])
        return outputs[2]
    }
}

/// Writes the two authentication codes of a handshake message whose first 116 or 60 bytes are given.
func authenticated(_ message: [UInt8], for recipient: [UInt8], cookie: [UInt8]?) -> [UInt8] {
    let mac1 = Reference.mac(Reference.hash(Array("mac1----".utf8), recipient), message)
    let mac2 = cookie.map { Reference.mac($0, message + mac1) } ?? [UInt8](repeating: 0, count: 16)
    return message + mac1 + mac2
}

/// The initiator's side of a handshake.
struct ReferenceInitiator {
    let message: [UInt8]
    let index: UInt32
    private let own: ReferenceKeyPair
    private let ephemeral: ReferenceKeyPair
    private let presharedKey: [UInt8]
    private let transcript: Transcript

    /// - Parameter claimedEphemeral: Put into the message instead of the real key: one of low order.
    init(
        own: ReferenceKeyPair, responder: [UInt8], presharedKey: [UInt8], timestamp: [UInt8], index: UInt32,
        ephemeral: ReferenceKeyPair, cookie: [UInt8]? = nil, claimedEphemeral: [UInt8]? = nil
    ) {
        var transcript = Transcript(responder: responder)
        let ephemeralKey = claimedEphemeral ?? ephemeral.publicKey
        transcript.chain = Reference.kdf(1, transcript.chain, ephemeralKey)[0]
        transcript.mix(ephemeralKey)
        let zero = [UInt8](repeating: 0, count: 32)
        var key = transcript.key(
            claimedEphemeral == nil ? Reference.sharedSecret(ephemeral.privateKey, responder) : zero)
        let encryptedStatic = transcript.seal(key, own.publicKey)
        key = transcript.key(Reference.sharedSecret(own.privateKey, responder))
        let encryptedTimestamp = transcript.seal(key, timestamp)
        let body =
            [1, 0, 0, 0] + Reference.littleEndian(index) + ephemeralKey + encryptedStatic + encryptedTimestamp
        message = authenticated(body, for: responder, cookie: cookie)
        self.own = own
        self.index = index
        self.ephemeral = ephemeral
        self.presharedKey = presharedKey
        self.transcript = transcript
    }

    /// The session that a response makes, or nil when it is not authentic.
    func finish(_ response: [UInt8]) -> ReferenceSession? {
        guard response.count == 92, Array(response[..<4]) == [2, 0, 0, 0],
            Reference.integer32(response[8..<12]) == index
        else { return nil }
        var transcript = transcript
        let theirs = Array(response[12..<44])
        let key = transcript.continueWithResponse(
            ephemeral: theirs, Reference.sharedSecret(ephemeral.privateKey, theirs),
            Reference.sharedSecret(own.privateKey, theirs), presharedKey: presharedKey)
        guard transcript.open(key, response[44..<60]) == [] else { return nil }
        let keys = Reference.kdf(2, transcript.chain, [])
        return ReferenceSession(
            localIndex: index, remoteIndex: Reference.integer32(response[4..<8]), sending: keys[0], receiving: keys[1])
    }
}

/// The responder's side of a handshake.
struct ReferenceResponder {
    let initiator: [UInt8]
    let timestamp: [UInt8]
    private let transcript: Transcript
    private let remoteIndex: UInt32
    private let theirEphemeral: [UInt8]

    /// Nil when the initiation is not authentic.
    init?(own: ReferenceKeyPair, _ initiation: [UInt8]) {
        guard initiation.count == 148, Array(initiation[..<4]) == [1, 0, 0, 0] else { return nil }
        var transcript = Transcript(responder: own.publicKey)
        theirEphemeral = Array(initiation[8..<40])
        remoteIndex = Reference.integer32(initiation[4..<8])
        transcript.chain = Reference.kdf(1, transcript.chain, theirEphemeral)[0]
        transcript.mix(theirEphemeral)
        var key = transcript.key(Reference.sharedSecret(own.privateKey, theirEphemeral))
        guard let initiator = transcript.open(key, initiation[40..<88]) else { return nil }
        key = transcript.key(Reference.sharedSecret(own.privateKey, initiator))
        guard let timestamp = transcript.open(key, initiation[88..<116]) else { return nil }
        self.initiator = initiator
        self.timestamp = timestamp
        self.transcript = transcript
    }

    /// A response and its session.
    func respond(
        presharedKey: [UInt8], index: UInt32, ephemeral: ReferenceKeyPair, cookie: [UInt8]? = nil,
        claimedEphemeral: [UInt8]? = nil
    ) -> (message: [UInt8], session: ReferenceSession) {
        var transcript = transcript
        let zero = [UInt8](repeating: 0, count: 32)
        let secrets = [theirEphemeral, initiator].map {
            claimedEphemeral == nil ? Reference.sharedSecret(ephemeral.privateKey, $0) : zero
        }
        let ephemeralKey = claimedEphemeral ?? ephemeral.publicKey
        let key = transcript.continueWithResponse(
            ephemeral: ephemeralKey, secrets[0], secrets[1], presharedKey: presharedKey)
        let encryptedNothing = transcript.seal(key, [])
        let body =
            [2, 0, 0, 0] + Reference.littleEndian(index) + Reference.littleEndian(remoteIndex) + ephemeralKey
            + encryptedNothing
        let keys = Reference.kdf(2, transcript.chain, [])
        let session = ReferenceSession(
            localIndex: index, remoteIndex: remoteIndex, sending: keys[1], receiving: keys[0])
        return (authenticated(body, for: initiator, cookie: cookie), session)
    }
}

/// The two keys of a session and the counter of the next message.
struct ReferenceSession {
    let localIndex: UInt32
    let remoteIndex: UInt32
    let sending: [UInt8]
    let receiving: [UInt8]
    var counter: UInt64 = 0

    init(localIndex: UInt32, remoteIndex: UInt32, sending: [UInt8], receiving: [UInt8]) {
        self.localIndex = localIndex
        self.remoteIndex = remoteIndex
        self.sending = sending
        self.receiving = receiving
    }

    /// A data message with the next counter; the plaintext is sealed as it is, without padding.
    mutating func seal(_ plaintext: [UInt8]) -> [UInt8] {
        defer { counter += 1 }
        return seal(plaintext, counter: counter)
    }

    /// A data message with a counter of choice.
    func seal(_ plaintext: [UInt8], counter: UInt64) -> [UInt8] {
        [4, 0, 0, 0] + Reference.littleEndian(remoteIndex) + Reference.littleEndian(counter)
            + Reference.seal(sending, counter, plaintext, [])
    }

    /// What is in a data message of the other side, padding included; nil when it is not for this session or not authentic.
    func open(_ message: [UInt8]) -> (counter: UInt64, plaintext: [UInt8])? {
        guard message.count >= 32, Array(message[..<4]) == [4, 0, 0, 0],
            Reference.integer32(message[4..<8]) == localIndex,
            case let counter = Reference.integer64(message[8..<16]),
            let plaintext = Reference.open(receiving, counter, Array(message[16...]), [])
        else { return nil }
        return (counter, plaintext)
    }
}

/// A cookie reply to `message`, whose first code begins at `mac1` (paper, section 5.4.7).
func cookieReply(
    to message: [UInt8], mac1: Int, cookie: [UInt8], responder: [UInt8], nonce: [UInt8]
) -> [UInt8] {
    [3, 0, 0, 0] + message[4..<8] + nonce
        + Reference.xSeal(
            Reference.hash(Array("cookie--".utf8), responder), nonce: nonce, cookie, Array(message[mac1..<mac1 + 16]))
}

/// The cookie in a reply to a message whose first code was `mac1`.
func openCookieReply(_ reply: [UInt8], mac1: [UInt8], responder: [UInt8]) -> [UInt8]? {
    guard reply.count == 64, Array(reply[..<4]) == [3, 0, 0, 0] else { return nil }
    return Reference.xOpen(
        Reference.hash(Array("cookie--".utf8), responder), nonce: Array(reply[8..<32]), Array(reply[32...]), mac1)
}
