import ByteAccess
import Glibc
import OpenSSLCrypto
import TestSupport
import Testing

@testable import WireGuard

/// After a call, a key is nowhere in the process's memory but where the caller keeps it.
@Suite(
    .serialized, .disabled(if: isAddressSanitized, "the sanitizer moves stack frames to memory that it keeps untouched")
)
struct KeyResidueTests {
    private let cryptography: OpenSSLCryptography

    init() throws { cryptography = try OpenSSLCryptography() }

    @Test func `a key that is in use is found`() throws {
        let key = MaskedKey(seed: 1)
        let secret = key.unmasked()
        #expect(try key.occurrences() == 2)
        withExtendedLifetime(secret) {}
    }

    @Test func `sealing and opening leave no key behind`() throws {
        let key = MaskedKey(seed: 2)
        var secret = key.unmasked()
        let nonce = [UInt8](repeating: 1, count: 12)
        let text = [UInt8](repeating: 2, count: 1500)
        let sealed = [UInt8](count: 1516) {
            cryptography.seal(
                key: secret.bytes, nonce: nonce.octets, plaintext: text.octets, authenticatedData: nonce.octets,
                into: &$0)
        }
        var isAuthentic = false
        _ = [UInt8](count: 1500) {
            isAuthentic = cryptography.open(
                key: secret.bytes, nonce: nonce.octets, ciphertext: sealed.octets, authenticatedData: nonce.octets,
                into: &$0)
        }
        #expect(isAuthentic)
        secret.wipe()
        #expect(try key.occurrences() == 0)
    }

    @Test func `trains leave no key behind`() throws {
        let key = MaskedKey(seed: 3)
        var secret = key.unmasked()
        var buffer = [UInt8](repeating: 0, count: 10 * 1000)
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        let train = MessageTrain(offset: 0, count: 10, stride: 1000, lastLength: 1000)
        cryptography.sealMessages(of: train, in: &bytes, key: secret.bytes)
        let authentic = cryptography.openMessages(of: train, in: &bytes, key: secret.bytes)
        #expect(authentic == 1 << 10 - 1)
        secret.wipe()
        #expect(try key.occurrences() == 0)
    }

    @Test func `X25519 leaves neither the private key nor the secret behind`() throws {
        let key = MaskedKey(seed: 4)
        let other = [UInt8](count: 32) { cryptography.derivePublicKey(of: [UInt8](1...32).octets, into: &$0) }
        var privateKey = key.unmasked()
        _ = [UInt8](count: 32) { cryptography.derivePublicKey(of: privateKey.bytes, into: &$0) }
        var secret = SecretMemory(byteCount: 32)
        secret.withMutableBytes {
            _ = cryptography.deriveSharedSecret(privateKey: privateKey.bytes, publicKey: other.octets, into: &$0)
        }
        let shared = MaskedKey(masking: secret.bytes)
        privateKey.wipe()
        secret.wipe()
        #expect(try key.occurrences() == 0)
        #expect(try shared.occurrences() == 0)
    }

    @Test func `freed secrets are overwritten`() throws {
        let key = MaskedKey(seed: 5)
        do {
            let secret = key.unmasked()
            #expect(try key.occurrences() == 2)
            withExtendedLifetime(secret) {}
        }
        #expect(try key.occurrences() == 0)
    }

    @Test func `the core's own primitives leave no key behind once the stack is scrubbed`() throws {
        let key = MaskedKey(seed: 6)
        let input = MaskedKey(seed: 7)
        let (first, second, code, subkey, plaintext) = deriveAll(key, input, cryptography)
        scrubStack()
        for secret in [key, input, first, second, code, subkey] { #expect(try secret.occurrences() == 0) }
        #expect(plaintext == [1, 2, 3])
    }

    /// Uses every primitive that takes a key, and hands out what was derived in masked form.
    @inline(never)
    private func deriveAll(
        _ key: MaskedKey, _ input: MaskedKey, _ cryptography: OpenSSLCryptography
    ) -> (MaskedKey, MaskedKey, MaskedKey, MaskedKey, [UInt8]) {
        var chainingKey = key.unmasked()
        var inputs = input.unmasked()
        var second = SecretMemory(byteCount: 32)
        var code = SecretMemory(byteCount: 32)
        var subkey = SecretMemory(byteCount: 32)
        let nonce = [UInt8](0..<24)
        let text: [UInt8] = [1, 2, 3]
        var plaintext = [UInt8](repeating: 0, count: 3)
        code.withMutableBytes { code in
            var keyed = BLAKE2s(key: chainingKey.bytes, outputLength: 32)
            keyed.update(inputs.bytes)
            keyed.finalize(into: &code)
        }
        subkey.withMutableBytes {
            HChaCha20.deriveKey(from: inputs.bytes, nonce: nonce.octets.extracting(first: 16), into: &$0)
        }
        let sealed = [UInt8](count: 19) {
            XChaCha20Poly1305.seal(
                key: inputs.bytes, nonce: nonce.octets, plaintext: text.octets, authenticatedData: RawSpan(),
                into: &$0, using: cryptography)
        }
        plaintext = [UInt8](count: 3) {
            _ = XChaCha20Poly1305.open(
                key: inputs.bytes, nonce: nonce.octets, ciphertext: sealed.octets, authenticatedData: RawSpan(),
                into: &$0, using: cryptography)
        }
        chainingKey.withMutableBytes { chainingKey in
            second.withMutableBytes { KeyDerivation.derive(updating: &chainingKey, input: inputs.bytes, into: &$0) }
        }
        inputs.wipe()
        return (
            MaskedKey(masking: chainingKey.bytes), MaskedKey(masking: second.bytes), MaskedKey(masking: code.bytes),
            MaskedKey(masking: subkey.bytes), plaintext
        )
    }
}

/// Whether AddressSanitizer is part of the process.
private let isAddressSanitized = unsafe dlsym(nil, "__asan_init") != nil

/// A key that lies in memory only with its bits inverted, so that looking for it does not find the looker's copy.
private struct MaskedKey {
    private var masked: [UInt8] = []

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed &+ 0x4B65_7973)
        masked = generator.bytes(32)
    }

    init(masking bytes: RawSpan) {
        for offset in 0..<bytes.byteCount { masked.append(~bytes.uint8(at: offset)) }
    }

    func unmasked() -> SecretMemory {
        var secret = SecretMemory(byteCount: masked.count)
        secret.withMutableBytes { bytes in
            for (offset, byte) in masked.enumerated() { bytes.store(~byte, at: offset) }
        }
        return secret
    }

    /// How often each half of the key is in the process's writable memory, taken together.
    func occurrences() throws -> Int {
        let memory = unsafe open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0)
        defer { close(memory) }
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { unsafe chunk.deallocate() }
        let start = UInt64(UInt(bitPattern: chunk.baseAddress))
        var count = 0
        for region in try Self.writableRegions() {
            // The chunk itself is left out: it would be found to hold what was just read.
            for part in [
                region.clamped(to: 0..<start), region.clamped(to: start + UInt64(chunk.count)..<UInt64.max),
            ] {
                var address = part.lowerBound
                while address < part.upperBound {
                    let wanted = min(chunk.count, Int(part.upperBound - address))
                    // In bounds. What another thread has unmapped meanwhile reads as an error.
                    let length = unsafe pread(memory, chunk.baseAddress, wanted, off_t(truncatingIfNeeded: address))
                    if length <= 0 { break }
                    let bytes = unsafe UnsafeRawBufferPointer(rebasing: chunk[..<length])
                    unsafe count +=
                        occurrences(of: masked[..<16], in: bytes) + occurrences(of: masked[16...], in: bytes)
                    if length < wanted || address + UInt64(length) == part.upperBound { break }
                    // What lies across two chunks is found in the next.
                    address += UInt64(length - 15)
                }
            }
        }
        // In bounds: it is the whole chunk.
        unsafe overwrite(chunk)
        return count
    }

    private func occurrences(of half: ArraySlice<UInt8>, in bytes: UnsafeRawBufferPointer) -> Int {
        guard let start = bytes.baseAddress, let first = half.first else { return 0 }
        var count = 0
        var offset = 0
        // Offsets stay so far below the length that half a key fits.
        while offset + half.count <= bytes.count,
            let found = unsafe memchr(start + offset, Int32(~first), bytes.count - half.count + 1 - offset)
        {
            offset = unsafe found - UnsafeMutableRawPointer(mutating: start)
            if half.enumerated().allSatisfy({ unsafe bytes[offset + $0.offset] == ~$0.element }) { count += 1 }
            offset += 1
        }
        return count
    }

    private static func writableRegions() throws -> [Range<UInt64>] {
        let file = unsafe open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let length = unsafe read(file, &piece, piece.count)
            if length <= 0 { break }
            text += piece[..<length]
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            let bounds = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            // A sanitizer's shadow memory takes terabytes, and holds nothing of the program's.
            guard fields[1].hasPrefix("rw"), bounds[1] - bounds[0] < 1 << 30 else { return nil }
            return bounds[0]..<bounds[1]
        }
    }
}
