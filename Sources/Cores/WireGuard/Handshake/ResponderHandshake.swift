import ByteAccess

/// The responder's half of a handshake (paper, sections 5.4.2 and 5.4.3). It lives for one call of the device: an initiation
/// is read, judged and answered at once.
///
/// ```
///  init (who is it?) ──▶ readTimestamp (is it fresh?) ──▶ writeResponse ──▶ a session, unconfirmed
/// ```
struct ResponderHandshake: ~Copyable {
    private var symmetric: SymmetricState
    private let theirEphemeral: PublicKey
    private let remoteIndex: UInt32
    /// The initiator's static public key. Whoever sent the message knew our public key, no more is proved yet.
    let initiator: PublicKey

    /// Reads an initiation as far as the initiator's name.
    ///
    /// - Returns: Nil when the message is not authentic or its ephemeral key is of low order.
    init?(reading message: RawSpan, identity: borrowing Identity, using cryptography: some Cryptography) {
        symmetric = SymmetricState(responder: identity.publicKey)
        theirEphemeral = PublicKey(message.extracting(InitiationLayout.ephemeral))
        remoteIndex = message.littleEndianUInt32(at: InitiationLayout.sender)
        symmetric.mixKey(theirEphemeral.bytes)
        symmetric.mixHash(theirEphemeral.bytes)
        let isUsable = symmetric.mixSharedSecretForEncryption(identity.privateKey, theirEphemeral, using: cryptography)
        var name = InlineArray<32, UInt8>(repeating: 0)
        var nameSpan = name.mutableSpan
        var nameBytes = nameSpan.mutableOctets
        let encryptedStatic = message.extracting(InitiationLayout.encryptedStatic)
        let isAuthentic = symmetric.decryptAndHash(encryptedStatic, into: &nameBytes, using: cryptography)
        initiator = PublicKey(nameBytes.bytes)
        guard isUsable, isAuthentic else { return nil }
    }

    /// Reads the time stamp, which proves that the initiator holds its static private key.
    ///
    /// - Parameter staticStatic: The precomputed X25519 of our static private and the initiator's static public key.
    /// - Returns: Nil when the message is not authentic.
    mutating func readTimestamp(
        of message: RawSpan, staticStatic: borrowing SecretMemory, using cryptography: some Cryptography
    ) -> Timestamp? {
        symmetric.mixKeyForEncryption(staticStatic.bytes)
        var stamp = InlineArray<12, UInt8>(repeating: 0)
        var stampSpan = stamp.mutableSpan
        var stampBytes = stampSpan.mutableOctets
        let encrypted = message.extracting(InitiationLayout.encryptedTimestamp)
        guard symmetric.decryptAndHash(encrypted, into: &stampBytes, using: cryptography) else { return nil }
        return Timestamp(stampBytes.bytes)
    }

    /// Writes the response, but for its two authentication codes, to `message`.
    ///
    /// - Returns: The keys of the session, or nil when a key of the initiator is of low order.
    consuming func writeResponse(
        into message: inout MutableRawSpan, localIndex: UInt32, presharedKey: borrowing SecretMemory,
        entropy: inout Entropy, using cryptography: some Cryptography
    ) -> SessionKeys? {
        let ephemeral = EphemeralKey(entropy: &entropy, using: cryptography)
        message.storeLittleEndian(MessageType.response.rawValue, at: 0)
        message.storeLittleEndian(localIndex, at: ResponseLayout.sender)
        message.storeLittleEndian(remoteIndex, at: ResponseLayout.receiver)
        message.copy(ephemeral.publicKey.bytes, to: ResponseLayout.ephemeral.lowerBound)
        symmetric.mixKey(ephemeral.publicKey.bytes)
        symmetric.mixHash(ephemeral.publicKey.bytes)
        guard
            symmetric.mixSharedSecret(ephemeral.privateKey, theirEphemeral, using: cryptography),
            symmetric.mixSharedSecret(ephemeral.privateKey, initiator, using: cryptography)
        else { return nil }
        symmetric.mixPresharedKey(presharedKey.bytes)
        let nothing = InlineArray<0, UInt8>(repeating: 0)
        var encryptedNothing = message.slice(ResponseLayout.encryptedNothing)
        symmetric.encryptAndHash(nothing.span.octets, into: &encryptedNothing, using: cryptography)
        return SessionKeys(splitting: symmetric, isInitiator: false, localIndex: localIndex, remoteIndex: remoteIndex)
    }
}
