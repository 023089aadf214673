import ByteAccess

/// The initiator's half of a handshake (paper, sections 5.4.2 and 5.4.3).
///
/// ```
///          writeInitiation                 readResponse: authentic
///  idle ───────────────────▶ awaiting ──────────────────────────────▶ idle, with a session
///    ▲                        │  │  ▲
///    └─────── clear ──────────┘  └──┘ writeInitiation (a retry starts afresh)
///                                     readResponse: not authentic (nothing changes)
/// ```
struct InitiatorHandshake: ~Copyable {
    /// What is kept between the initiation and its response.
    private struct Awaiting: ~Copyable {
        let localIndex: UInt32
        let symmetric: SymmetricState
        let ephemeral: EphemeralKey
    }

    private var awaiting: Awaiting?

    /// The index that a response must name; nil when none is awaited.
    var localIndex: UInt32? {
        switch awaiting {
        case .some(let awaiting): awaiting.localIndex
        case .none: nil
        }
    }

    /// Forgets the handshake under way and wipes its keys.
    mutating func clear() {
        awaiting = nil
    }

    /// Writes an initiation, but for its two authentication codes, to `message` and waits for its response.
    ///
    /// - Parameter staticStatic: The precomputed X25519 of our static private and the responder's static public key.
    /// - Returns: False when the responder's public key is of low order; nothing is awaited then.
    mutating func writeInitiation(
        into message: inout MutableRawSpan, localIndex: UInt32, identity: borrowing Identity, responder: PublicKey,
        staticStatic: borrowing SecretMemory, timestamp: Timestamp, entropy: inout Entropy,
        using cryptography: some Cryptography
    ) -> Bool {
        awaiting = nil
        let ephemeral = EphemeralKey(entropy: &entropy, using: cryptography)
        var symmetric = SymmetricState(responder: responder)
        message.storeLittleEndian(MessageType.initiation.rawValue, at: 0)
        message.storeLittleEndian(localIndex, at: InitiationLayout.sender)
        message.copy(ephemeral.publicKey.bytes, to: InitiationLayout.ephemeral.lowerBound)
        symmetric.mixKey(ephemeral.publicKey.bytes)
        symmetric.mixHash(ephemeral.publicKey.bytes)
        guard symmetric.mixSharedSecretForEncryption(ephemeral.privateKey, responder, using: cryptography) else {
            return false
        }
        var encryptedStatic = message.slice(InitiationLayout.encryptedStatic)
        symmetric.encryptAndHash(identity.publicKey.bytes, into: &encryptedStatic, using: cryptography)

        symmetric.mixKeyForEncryption(staticStatic.bytes)
        var stamp = InlineArray<12, UInt8>(repeating: 0)
        var stampSpan = stamp.mutableSpan
        var stampBytes = stampSpan.mutableOctets
        timestamp.store(into: &stampBytes, at: 0)
        var encryptedTimestamp = message.slice(InitiationLayout.encryptedTimestamp)
        symmetric.encryptAndHash(stampBytes.bytes, into: &encryptedTimestamp, using: cryptography)

        awaiting = Awaiting(localIndex: localIndex, symmetric: symmetric, ephemeral: ephemeral)
        return true
    }

    /// Reads the response to the initiation sent last.
    ///
    /// - Returns: The keys of the session, or nil when the message does not fit or is not authentic: the handshake goes on
    ///   waiting then, because anyone can send a wrong response.
    mutating func readResponse(
        _ message: RawSpan, identity: borrowing Identity, presharedKey: borrowing SecretMemory,
        using cryptography: some Cryptography
    ) -> SessionKeys? {
        guard let keys = derive(message, identity: identity, presharedKey: presharedKey, using: cryptography) else {
            return nil
        }
        awaiting = nil
        return keys
    }

    private func derive(
        _ message: RawSpan, identity: borrowing Identity, presharedKey: borrowing SecretMemory,
        using cryptography: some Cryptography
    ) -> SessionKeys? {
        switch awaiting {
        case .none:
            return nil
        case .some(let awaiting):
            guard awaiting.localIndex == message.littleEndianUInt32(at: ResponseLayout.receiver) else { return nil }
            var symmetric = SymmetricState(copying: awaiting.symmetric)
            let theirEphemeral = PublicKey(message.extracting(ResponseLayout.ephemeral))
            symmetric.mixKey(theirEphemeral.bytes)
            symmetric.mixHash(theirEphemeral.bytes)
            guard
                symmetric.mixSharedSecret(awaiting.ephemeral.privateKey, theirEphemeral, using: cryptography),
                symmetric.mixSharedSecret(identity.privateKey, theirEphemeral, using: cryptography)
            else { return nil }
            symmetric.mixPresharedKey(presharedKey.bytes)
            var nothing = InlineArray<0, UInt8>(repeating: 0)
            var nothingSpan = nothing.mutableSpan
            var nothingBytes = nothingSpan.mutableOctets
            let encrypted = message.extracting(ResponseLayout.encryptedNothing)
            guard symmetric.decryptAndHash(encrypted, into: &nothingBytes, using: cryptography) else { return nil }
            let remoteIndex = message.littleEndianUInt32(at: ResponseLayout.sender)
            return SessionKeys(
                splitting: symmetric, isInitiator: true, localIndex: awaiting.localIndex, remoteIndex: remoteIndex)
        }
    }
}
