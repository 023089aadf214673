/// What a finished handshake leaves: one key for each direction and the two indices that name the session.
struct SessionKeys: ~Copyable {
    let sending: SecretMemory
    let receiving: SecretMemory
    let isInitiator: Bool
    /// The index that the peer puts into messages to us.
    let localIndex: UInt32
    /// The index that we put into messages to the peer.
    let remoteIndex: UInt32

    /// Splits the final handshake state (paper, section 5.4.5).
    init(splitting symmetric: borrowing SymmetricState, isInitiator: Bool, localIndex: UInt32, remoteIndex: UInt32) {
        var initiatorSends = SecretMemory(byteCount: 32)
        var responderSends = SecretMemory(byteCount: 32)
        symmetric.split(initiatorSends: &initiatorSends, responderSends: &responderSends)
        if isInitiator {
            sending = initiatorSends
            receiving = responderSends
        } else {
            sending = responderSends
            receiving = initiatorSends
        }
        self.isInitiator = isInitiator
        self.localIndex = localIndex
        self.remoteIndex = remoteIndex
    }
}
