import Provider

/// The two keys of a session with their counters (paper, section 5.4.6). Both ends hold one; the keys are wiped with it.
///
/// Threads may share it: the keys never change, and counters and window are touched only through the device, by the one
/// thread that has it.
final class Keypair: @unchecked Sendable {
    /// The key that outgoing messages are sealed with.
    let sending: SecretMemory
    /// The key that incoming messages are opened with.
    let receiving: SecretMemory
    /// True on the side that sent the initiation: the one that renews the session.
    let isInitiator: Bool
    /// The index that the peer puts into messages to us.
    let localIndex: UInt32
    /// The index that we put into messages to the peer.
    let remoteIndex: UInt32
    /// When the handshake ended.
    let created: Instant
    /// The counter of the next outgoing message.
    private(set) var nextCounter: UInt64 = 0
    /// The counters of the messages received so far.
    var window = ReplayWindow()

    init(_ keys: consuming SessionKeys, created: Instant) {
        isInitiator = keys.isInitiator
        localIndex = keys.localIndex
        remoteIndex = keys.remoteIndex
        sending = keys.sending
        receiving = keys.receiving
        self.created = created
    }

    /// True while the key may be used: below the age at which both ends reject it.
    func isAlive(at now: Instant) -> Bool {
        now.since(created) < ProtocolConstants.rejectAfterTime
    }

    /// Seals a train of messages that bear counters of this key.
    func seal(_ train: MessageTrain, in buffer: inout MutableRawSpan, using cryptography: some Cryptography) {
        Self.seal(train, in: &buffer, key: sending, using: cryptography)
    }

    /// Opens up to 64 messages. Bit N of the result is set when message N was authentic.
    func open(_ train: MessageTrain, in buffer: inout MutableRawSpan, using cryptography: some Cryptography) -> UInt64 {
        Self.open(train, in: &buffer, key: receiving, using: cryptography)
    }

    // A span into a part of an object cannot be had, but the part can be borrowed for a call.

    private static func seal(
        _ train: MessageTrain, in buffer: inout MutableRawSpan, key: borrowing SecretMemory,
        using cryptography: some Cryptography
    ) {
        cryptography.sealMessages(of: train, in: &buffer, key: key.bytes)
    }

    private static func open(
        _ train: MessageTrain, in buffer: inout MutableRawSpan, key: borrowing SecretMemory,
        using cryptography: some Cryptography
    ) -> UInt64 {
        cryptography.openMessages(of: train, in: &buffer, key: key.bytes)
    }

    /// Takes `count` consecutive counters and returns the first, or nil when the key has no more of them.
    func reserveCounters(_ count: Int) -> UInt64? {
        guard nextCounter < ProtocolConstants.rejectAfterMessages,
            ProtocolConstants.rejectAfterMessages - nextCounter >= UInt64(count)
        else { return nil }
        defer { nextCounter += UInt64(count) }
        return nextCounter
    }

    /// True when a sender should start a new handshake: after very many messages, or as the initiator of an old key. A
    /// responder leaves it to the initiator, or both would renew at once and fight.
    func isDueForRekeyOnSend(at now: Instant) -> Bool {
        nextCounter > ProtocolConstants.rekeyAfterMessages
            || (isInitiator && now.since(created) >= ProtocolConstants.rekeyAfterTime)
    }

    /// True when a receiving initiator should start a new handshake, because soon the key can no longer be renewed in time.
    func isDueForRekeyOnReceive(at now: Instant) -> Bool {
        isInitiator && now.since(created) >= ProtocolConstants.lastMinuteRekeyAge
    }

    /// Sets the counter of the next outgoing message, for tests of the limits.
    func setNextCounter(_ counter: UInt64) {
        nextCounter = counter
    }
}
