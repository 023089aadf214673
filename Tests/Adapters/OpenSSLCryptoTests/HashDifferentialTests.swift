import ByteAccess
import TestSupport
import Testing

@testable import WireGuard

/// The core's own hash and what is built on it, against OpenSSL's, on random input of random lengths.
@Suite struct HashDifferentialTests {
    @Test func `BLAKE2s agrees with OpenSSL`() {
        var generator = SeededGenerator(seed: 1)
        for count in Array(0...300) + (0..<100).map({ _ in Int.random(in: 0...5000, using: &generator) }) {
            let input = generator.bytes(count)
            let hash = [UInt8](count: 32) { BLAKE2s.hash(input.octets, into: &$0) }
            #expect(hash == Reference.blake2s(input), "\(count) bytes")
        }
    }

    @Test func `BLAKE2s over two pieces agrees with OpenSSL over their concatenation`() {
        var generator = SeededGenerator(seed: 2)
        for _ in 0..<300 {
            let first = generator.bytes(Int.random(in: 0...200, using: &generator))
            let second = generator.bytes(Int.random(in: 0...200, using: &generator))
            let hash = [UInt8](count: 32) { BLAKE2s.hash(first.octets, second.octets, into: &$0) }
            #expect(hash == Reference.blake2s(first + second), "\(first.count) and \(second.count) bytes")
        }
    }

    @Test func `keyed BLAKE2s agrees with OpenSSL for every length of key and output`() {
        var generator = SeededGenerator(seed: 3)
        for keyLength in 1...32 {
            for outputLength in 1...32 {
                let key = generator.bytes(keyLength)
                let input = generator.bytes(Int.random(in: 0...300, using: &generator))
                let code = [UInt8](count: outputLength) { output in
                    var hash = BLAKE2s(key: key.octets, outputLength: outputLength)
                    hash.update(input.octets)
                    hash.finalize(into: &output)
                }
                #expect(
                    code == Reference.keyedBLAKE2s(key: key, input, count: outputLength),
                    "\(keyLength), \(input.count) and \(outputLength) bytes")
            }
        }
    }

    @Test func `the message authentication code agrees with OpenSSL's of 16 bytes, and is checked in every byte`() {
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<200 {
            let key = generator.bytes(Bool.random(using: &generator) ? 32 : 16)
            let first = generator.bytes(Int.random(in: 0...150, using: &generator))
            let second = generator.bytes(Int.random(in: 0...20, using: &generator))
            var code = [UInt8](count: 16) {
                MessageAuthenticationCode.authenticate(key: key.octets, first.octets, second.octets, into: &$0)
            }
            let whole = first + second
            #expect(code == Reference.keyedBLAKE2s(key: key, whole, count: 16))
            #expect(MessageAuthenticationCode.isValid(code.octets, of: whole.octets, key: key.octets) == true)
            code[Int.random(in: 0..<16, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            #expect(MessageAuthenticationCode.isValid(code.octets, of: whole.octets, key: key.octets) == false)
        }
    }

    @Test func `HMAC agrees with OpenSSL for every length of key up to a block`() {
        var generator = SeededGenerator(seed: 5)
        for keyLength in 1...64 {
            for _ in 0..<8 {
                let key = generator.bytes(keyLength)
                let first = generator.bytes(Int.random(in: 0...100, using: &generator))
                let second = generator.bytes(Int.random(in: 0...100, using: &generator))
                let code = [UInt8](count: 32) {
                    HMACBLAKE2s.authenticate(key: key.octets, first.octets, second.octets, into: &$0)
                }
                #expect(code == Reference.hmac(key: key, first + second))
            }
        }
    }

    /// The paper's KDFn, written with OpenSSL's HMAC.
    private func derivation(_ chainingKey: [UInt8], _ input: [UInt8]) -> [[UInt8]] {
        let extracted = Reference.hmac(key: chainingKey, input)
        let first = Reference.hmac(key: extracted, [1])
        let second = Reference.hmac(key: extracted, first + [2])
        return [first, second, Reference.hmac(key: extracted, second + [3])]
    }

    /// What `write` leaves in three spans of 32 bytes.
    private func outputs(
        _ write: (inout MutableRawSpan, inout MutableRawSpan, inout MutableRawSpan) -> Void
    ) -> [[UInt8]] {
        var third: [UInt8] = []
        var second: [UInt8] = []
        let first = [UInt8](count: 32) { first in
            second = [UInt8](count: 32) { second in
                third = [UInt8](count: 32) { third in write(&first, &second, &third) }
            }
        }
        return [first, second, third]
    }

    @Test func `the key derivation agrees with one made of OpenSSL's HMAC`() {
        var generator = SeededGenerator(seed: 6)
        for inputLength in [0, 12, 32, 32, 32, 100] {
            let chainingKey = generator.bytes(32)
            let input = generator.bytes(inputLength)
            let expected = derivation(chainingKey, input)
            let ofOne = outputs { first, _, _ in
                KeyDerivation.derive(chainingKey: chainingKey.octets, input: input.octets, into: &first)
            }
            #expect(ofOne[0] == expected[0])
            let ofTwo = outputs { first, second, _ in
                KeyDerivation.derive(chainingKey: chainingKey.octets, input: input.octets, into: &first, &second)
            }
            #expect(ofTwo[..<2] == expected[..<2])
            let ofThree = outputs { first, second, third in
                KeyDerivation.derive(
                    chainingKey: chainingKey.octets, input: input.octets, into: &first, &second, &third)
            }
            #expect(ofThree == expected)
        }
    }

    @Test func `deriving in place replaces the chaining key by the first output`() {
        var generator = SeededGenerator(seed: 7)
        for count in 1...3 {
            let chainingKey = generator.bytes(32)
            let input = generator.bytes(32)
            let derived = outputs { first, second, third in
                first.copy(chainingKey.octets, to: 0)
                switch count {
                case 1: KeyDerivation.derive(updating: &first, input: input.octets)
                case 2: KeyDerivation.derive(updating: &first, input: input.octets, into: &second)
                default: KeyDerivation.derive(updating: &first, input: input.octets, into: &second, &third)
                }
            }
            #expect(derived[..<count] == derivation(chainingKey, input)[..<count])
        }
    }
}
