import ByteAccess
import IPPacket
import TestSupport
import Testing

@Suite struct InternetChecksumTests {
    @Test func `the example of RFC 1071 sums to ddf2`() {
        var sum = InternetChecksum()
        sum.add(hex("0001 f203 f4f5 f6f7").span.octets)
        #expect(sum.folded == 0xDDF2)
        #expect(sum.checksum == 0x220D)
    }

    @Test func `every length and alignment sums as the definition says`() {
        var random = SeededGenerator(seed: 1071)
        let bytes = random.bytes(200)
        for start in 0..<9 {
            for end in start...bytes.count {
                var sum = InternetChecksum()
                sum.add(bytes.span.octets.extracting(start..<end))
                #expect(sum.folded == referenceSum(Array(bytes[start..<end])), "\(start)..<\(end)")
            }
        }
    }

    @Test(arguments: [0x00, 0x01, 0xFE, 0xFF] as [UInt8])
    func `carries are brought round whatever the bytes are`(_ byte: UInt8) {
        for count in [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 1499, 1500, 65_535] {
            let bytes = [UInt8](repeating: byte, count: count)
            var sum = InternetChecksum()
            sum.add(bytes.span.octets)
            #expect(sum.folded == referenceSum(bytes), "\(count)")
        }
    }

    @Test func `random packets in pieces sum as the whole`() {
        var random = SeededGenerator(seed: 1624)
        for _ in 0..<300 {
            // Bytes of few values bring carries about far more often than uniform ones.
            let values: [UInt8] = Bool.random(using: &random) ? [0, 0xFF] : Array(0...255)
            let count = Int.random(in: 0..<3_000, using: &random)
            let bytes = (0..<count).map { _ in values.randomElement(using: &random) ?? 0 }
            let cut = Int.random(in: 0...count / 2, using: &random) * 2
            var sum = InternetChecksum()
            sum.add(bytes.span.octets.extracting(cut...))
            sum.add(bytes.span.octets.extracting(..<cut))
            #expect(sum.folded == referenceSum(bytes))
        }
    }

    @Test func `the example of RFC 1624 updates to zero`() {
        #expect(InternetChecksum.updating(0xDD2F, replacing: 0x5555, with: 0x3285) == 0x0000)
    }

    @Test func `an update gives what summing again gives`() {
        var random = SeededGenerator(seed: 1141)
        for _ in 0..<5_000 {
            var words = (0..<10).map { _ in random.edgeWord() }
            words[0] = 0x4500  // a header is never all zeros, for which one's complement has two answers
            func checksum() -> UInt16 { ~referenceSum(words.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }) }
            let before = checksum()
            let index = Int.random(in: 1..<10, using: &random)
            let old = words[index]
            words[index] = random.edgeWord()
            #expect(InternetChecksum.updating(before, replacing: old, with: words[index]) == checksum())
        }
    }

    @Test func `pseudo-headers sum as their bytes`() throws {
        var random = SeededGenerator(seed: 8200)
        for _ in 0..<300 {
            let (source, destination) = (random.bytes(16), random.bytes(16))
            let length = Int.random(in: 0...65_575, using: &random)
            let number = random.next() as UInt8
            let lengthBytes = [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
            let ipv6 = InternetChecksum(
                pseudoHeaderSource: .v6(source.span.octets.ipv6Address(at: 0)),
                destination: .v6(destination.span.octets.ipv6Address(at: 0)), protocol: IPProtocol(rawValue: number),
                length: length)
            #expect(ipv6.folded == referenceSum(source + destination + [0] + lengthBytes + [0, 0, 0, number]))
            let ipv4 = InternetChecksum(
                pseudoHeaderSource: .v4(source.span.octets.ipv4Address(at: 0)),
                destination: .v4(destination.span.octets.ipv4Address(at: 0)), protocol: IPProtocol(rawValue: number),
                length: length & 0xFFFF)
            #expect(ipv4.folded == referenceSum(source[..<4] + destination[..<4] + [0, number] + lengthBytes[1...]))
        }
    }

    @Test func `a checksum that comes to zero is written as all ones where zero means none`() {
        var sum = InternetChecksum()
        sum.add(0xFFFF)
        #expect(sum.checksum == 0)
        #expect(sum.nonzeroChecksum == 0xFFFF)
        sum.add(1)
        #expect(sum.checksum == 0xFFFE)
        #expect(sum.nonzeroChecksum == 0xFFFE)
    }
}

extension SeededGenerator {
    /// A word that is often all zeros or all ones, where one's complement is at its strangest.
    fileprivate mutating func edgeWord() -> UInt16 {
        let words: [UInt16] = [0, 0xFFFF, next()]
        return words[Int.random(in: 0..<3, using: &self)]
    }
}
