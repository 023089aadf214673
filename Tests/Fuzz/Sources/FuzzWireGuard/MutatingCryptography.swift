import FuzzSupport
import OpenSSLCrypto
import WireGuard

/// OpenSSL with a change made to what is sealed, before it is sealed: authentic messages from a peer that has the keys and
/// means no good. That is how the fuzzer gets behind the authentication.
final class MutatingCryptography: Cryptography {
    /// One byte to be changed.
    struct Mutation {
        var offset: Int
        var bits: UInt8
    }

    private let actual: OpenSSLCryptography
    /// What is done to the next message that is sealed.
    var mutation: Mutation?
    /// True when a mutation was applied.
    private(set) var hasMutated = false

    init() {
        do {
            actual = try OpenSSLCryptography()
        } catch {
            fatalError("OpenSSL lacks an algorithm: \(error)")
        }
    }

    func derivePublicKey(of privateKey: RawSpan, into publicKey: inout MutableRawSpan) {
        actual.derivePublicKey(of: privateKey, into: &publicKey)
    }

    func deriveSharedSecret(
        privateKey: RawSpan, publicKey: RawSpan, into secret: inout MutableRawSpan
    ) -> Bool {
        actual.deriveSharedSecret(privateKey: privateKey, publicKey: publicKey, into: &secret)
    }

    func seal(
        key: RawSpan, nonce: RawSpan, plaintext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan
    ) {
        guard let mutation = takeMutation(), plaintext.byteCount > 0 else {
            return actual.seal(
                key: key, nonce: nonce, plaintext: plaintext, authenticatedData: authenticatedData, into: &output)
        }
        var changed = [UInt8](copying: plaintext)
        changed[mutation.offset % changed.count] ^= mutation.bits
        // Bytes have no padding.
        unsafe actual.seal(
            key: key, nonce: nonce, plaintext: changed.span.bytes, authenticatedData: authenticatedData, into: &output)
    }

    func open(
        key: RawSpan, nonce: RawSpan, ciphertext: RawSpan, authenticatedData: RawSpan, into output: inout MutableRawSpan
    ) -> Bool {
        actual.open(
            key: key, nonce: nonce, ciphertext: ciphertext, authenticatedData: authenticatedData, into: &output)
    }

    func sealMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan) {
        if train.count > 0, let mutation = takeMutation() {
            // Anything behind the type and before the tag: the receiver's index, the counter, the packet.
            let range = train.range(of: 0)
            let offset = range.lowerBound + 4 + mutation.offset % (range.count - 20)
            let old = unsafe buffer.bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            buffer.storeBytes(of: old ^ mutation.bits, toByteOffset: offset, as: UInt8.self)
        }
        actual.sealMessages(of: train, in: &buffer, key: key)
    }

    func openMessages(of train: MessageTrain, in buffer: inout MutableRawSpan, key: RawSpan) -> UInt64 {
        actual.openMessages(of: train, in: &buffer, key: key)
    }

    private func takeMutation() -> Mutation? {
        guard let mutation else { return nil }
        self.mutation = nil
        hasMutated = true
        return mutation
    }
}
