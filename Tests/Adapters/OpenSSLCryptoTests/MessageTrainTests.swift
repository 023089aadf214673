import ByteAccess
import OpenSSLCrypto
import TestSupport
import Testing
import WireGuard

/// Trains of data messages, compared with messages sealed one by one by OpenSSL.
@Suite struct MessageTrainTests {
    private let cryptography: OpenSSLCryptography

    init() throws { cryptography = try OpenSSLCryptography() }

    /// A train and what is around it in its buffer.
    private struct Sample {
        var train: MessageTrain
        var key: [UInt8]
        /// Random bytes with the messages' headers and plaintexts in them, with anything where their tags are to be.
        var plain: [UInt8]
        /// The same with the messages sealed.
        var sealed: [UInt8]

        init(count: Int, stride: Int, lastLength: Int, firstCounter: UInt64, using generator: inout SeededGenerator) {
            train = MessageTrain(
                offset: Int.random(in: 0...70, using: &generator), count: count, stride: stride, lastLength: lastLength)
            key = generator.bytes(32)
            plain = generator.bytes(train.offset + train.length + Int.random(in: 0...70, using: &generator))
            sealed = plain
            for index in 0..<count {
                let range = train.range(of: index)
                let counter = firstCounter &+ UInt64(index)
                let counterField = (0..<8).map { UInt8(truncatingIfNeeded: counter >> ($0 * 8)) }
                let header = [4, 0, 0, 0] + generator.bytes(4) + counterField
                for (place, byte) in header.enumerated() {
                    plain[range.lowerBound + place] = byte
                    sealed[range.lowerBound + place] = byte
                }
                let text = range.lowerBound + 16..<range.upperBound - 16
                let message = Reference.seal(
                    key: key, nonce: [0, 0, 0, 0] + counterField, plaintext: Array(plain[text]))
                sealed.replaceSubrange(text.lowerBound..<range.upperBound, with: message)
            }
        }
    }

    private func seal(_ sample: Sample) -> [UInt8] {
        var buffer = sample.plain
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        cryptography.sealMessages(of: sample.train, in: &bytes, key: sample.key.octets)
        return buffer
    }

    /// What `buffer` becomes, and which messages were called authentic.
    private func open(_ train: MessageTrain, of buffer: [UInt8], key: [UInt8]) -> ([UInt8], UInt64) {
        var buffer = buffer
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        let authentic = cryptography.openMessages(of: train, in: &bytes, key: key.octets)
        return (buffer, authentic)
    }

    private func samples(seed: UInt64) -> [Sample] {
        var generator = SeededGenerator(seed: seed)
        var samples: [Sample] = []
        for (count, stride, lastLength) in [
            (1, 32, 32), (1, 1452, 1452), (2, 48, 32), (7, 33, 33), (3, 112, 95), (44, 1452, 700), (64, 64, 64),
        ] {
            for firstCounter: UInt64 in [0, .random(in: 0...1 << 60, using: &generator), (1 << 32) - 2] {
                samples.append(
                    Sample(
                        count: count, stride: stride, lastLength: lastLength, firstCounter: firstCounter,
                        using: &generator))
            }
        }
        return samples
    }

    @Test func `a train is sealed in place like its messages one by one, and nothing around it changes`() {
        for sample in samples(seed: 1) { #expect((seal(sample) == sample.sealed) == true, "\(sample.train)") }
    }

    @Test func `texts of any length up to some blocks, and the longest, are sealed as by OpenSSL`() {
        var generator = SeededGenerator(seed: 6)
        for length in Array(0...330) + [1_023, 1_024, 1_025, 4_095, 4_096, 65_475, 65_503] {
            let sample = Sample(
                count: 1, stride: length + 32, lastLength: length + 32, firstCounter: UInt64(length), using: &generator)
            #expect((seal(sample) == sample.sealed) == true, "\(length) bytes")
            let (opened, authentic) = open(sample.train, of: sample.sealed, key: sample.key)
            let text = sample.train.range(of: 0).dropFirst(16).dropLast(16)
            #expect(authentic == 1 && (opened[text] == sample.plain[text]) == true, "\(length) bytes")
        }
    }

    @Test func `a train is opened in place, and nothing around the texts changes`() {
        for sample in samples(seed: 2) {
            let train = sample.train
            let (opened, authentic) = open(train, of: sample.sealed, key: sample.key)
            #expect(authentic == UInt64.max >> UInt64(64 - train.count))
            var expected = sample.plain
            for index in 0..<train.count {
                let tag = train.range(of: index).suffix(16)
                expected.replaceSubrange(tag, with: sample.sealed[tag])
            }
            #expect((opened == expected) == true, "\(train)")
        }
    }

    @Test func `only the messages that were changed are not authentic`() {
        var generator = SeededGenerator(seed: 3)
        for sample in samples(seed: 4) {
            let train = sample.train
            var buffer = sample.sealed
            var expected = UInt64.max >> UInt64(64 - train.count)
            for index in 0..<train.count where Bool.random(using: &generator) {
                // Anywhere in the counter, the text or the tag.
                buffer[train.range(of: index).dropFirst(8).randomElement(using: &generator) ?? 0] ^= 0x20
                expected &= ~(1 << UInt64(index))
            }
            let (opened, authentic) = open(train, of: buffer, key: sample.key)
            #expect(authentic == expected)
            for index in 0..<train.count where expected >> UInt64(index) & 1 == 1 {
                let text = train.range(of: index).dropFirst(16).dropLast(16)
                #expect((opened[text] == sample.plain[text]) == true)
            }
        }
    }

    @Test func `another key opens nothing`() {
        for sample in samples(seed: 5) {
            #expect(open(sample.train, of: sample.sealed, key: [UInt8](repeating: 0, count: 32)).1 == 0)
        }
    }

    @Test func `no train is no message`() {
        let train = MessageTrain(offset: 0, count: 0, stride: 0, lastLength: 0)
        #expect(open(train, of: [1, 2, 3], key: [UInt8](repeating: 0, count: 32)) == ([1, 2, 3], 0))
    }

    @Test func `sealing and opening may alternate between keys`() {
        let samples = samples(seed: 6)
        for (one, other) in zip(samples, samples.reversed()) {
            #expect((seal(one) == one.sealed) == true)
            #expect(open(other.train, of: other.sealed, key: other.key).1 & 1 == 1)
            #expect((seal(other) == other.sealed) == true)
            #expect(open(one.train, of: one.sealed, key: one.key).1 & 1 == 1)
        }
    }
}
