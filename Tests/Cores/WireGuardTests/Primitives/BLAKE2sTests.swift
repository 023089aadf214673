import ByteAccess
import TestSupport
import Testing

@testable import WireGuard

@Suite struct BLAKE2sTests {
    @Test func `the hash of abc is that of RFC 7693 appendix B`() {
        let hash = [UInt8](count: 32) { BLAKE2s.hash(Array("abc".utf8).octets, into: &$0) }
        #expect(
            hash
                == hex(
                    """
                    50 8C 5E 8C 32 7C 14 E2 E1 A7 2B A3 4E EB 45 2F
                    37 45 8B 20 9E D6 3A 29 4D 99 9B 4C 86 67 59 82
                    """))
    }

    /// RFC 7693 appendix E: one hash over the hashes, keyed and not, of many lengths of input and output.
    @Test func `the self-test of RFC 7693 appendix E passes`() {
        var total = BLAKE2s()
        for outputLength in [16, 20, 28, 32] {
            for inputLength in [0, 3, 64, 65, 255, 1024] {
                let input = Self.sequence(count: inputLength, seed: UInt32(inputLength))
                let plain = [UInt8](count: outputLength) { output in
                    var hash = BLAKE2s(outputLength: outputLength)
                    hash.update(input.octets)
                    hash.finalize(into: &output)
                }
                total.update(plain.octets)
                let key = Self.sequence(count: outputLength, seed: UInt32(outputLength))
                let keyed = [UInt8](count: outputLength) { output in
                    var hash = BLAKE2s(key: key.octets, outputLength: outputLength)
                    hash.update(input.octets)
                    hash.finalize(into: &output)
                }
                total.update(keyed.octets)
            }
        }
        var hash = [UInt8](repeating: 0, count: 32)
        var span = hash.mutableSpan
        var bytes = span.mutableOctets
        total.finalize(into: &bytes)
        #expect(
            hash
                == hex(
                    """
                    6A 41 1F 08 CE 25 AD CD FB 02 AB A6 41 45 1C EC
                    53 C5 98 B2 4F 4F C7 87 FB DC 88 79 7F 4C 1D FE
                    """))
    }

    @Test func `any way of cutting the input into pieces gives the same hash`() {
        var generator = SeededGenerator(seed: 7693)
        for _ in 0..<200 {
            let input = generator.bytes(Int.random(in: 0...400, using: &generator))
            let whole = [UInt8](count: 32) { BLAKE2s.hash(input.octets, into: &$0) }
            var hash = BLAKE2s()
            var rest = input[...]
            while !rest.isEmpty {
                let piece = Array(rest.prefix(Int.random(in: 0...130, using: &generator)))
                rest = rest.dropFirst(piece.count)
                hash.update(piece.octets)
            }
            var pieces = [UInt8](repeating: 0, count: 32)
            var span = pieces.mutableSpan
            var bytes = span.mutableOctets
            hash.finalize(into: &bytes)
            #expect(pieces == whole, "\(input.count) bytes")
        }
    }

    @Test func `mixing replaces a hash by the hash of itself and the input`() {
        var generator = SeededGenerator(seed: 1)
        let state = generator.bytes(32)
        let input = generator.bytes(48)
        var mixed = state
        var span = mixed.mutableSpan
        var bytes = span.mutableOctets
        BLAKE2s.mix(input.octets, into: &bytes)
        #expect(mixed == [UInt8](count: 32) { BLAKE2s.hash((state + input).octets, into: &$0) })
    }

    /// RFC 7693 appendix E's Fibonacci generator.
    private static func sequence(count: Int, seed: UInt32) -> [UInt8] {
        var first = 0xDEAD_4BAD &* seed
        var second: UInt32 = 1
        return (0..<count).map { _ in
            let sum = first &+ second
            first = second
            second = sum
            return UInt8(truncatingIfNeeded: sum >> 24)
        }
    }
}
