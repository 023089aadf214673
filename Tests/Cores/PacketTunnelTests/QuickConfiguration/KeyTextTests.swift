import ByteAccess
import PacketTunnel
import Testing
import WireGuard

struct KeyTextTests {
    /// The text of a key by the rules of RFC 4648 §4, and by nothing of ours.
    private static func reference(_ key: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var bits = key.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
        bits += [0, 0]
        return stride(from: 0, to: bits.count, by: 6).map { start in
            String(alphabet[bits[start..<start + 6].reduce(0) { $0 << 1 | Int($1) }])
        }.joined() + "="
    }

    private static func encode(_ key: [UInt8]) -> String {
        var output = [UInt8](repeating: 0, count: 46)
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        KeyText.encode(key.span.octets, into: &bytes, at: 1)
        #expect(output.first == 0 && output.last == 0)
        return String(decoding: output[1..<45], as: UTF8.self)
    }

    private static func decode(_ text: [UInt8]) -> [UInt8]? {
        switch KeyText.decode(text.span.octets) {
        case .some(let memory): (0..<memory.byteCount).map { memory.bytes.uint8(at: $0) }
        case .none: nil
        }
    }

    @Test func bothDirectionsAgreeWithTheReference() {
        var generator = SystemRandomNumberGenerator()
        for round in 0..<500 {
            let key = (0..<32).map { _ in round < 2 ? UInt8(round) &* 255 : UInt8.random(in: 0...255, using: &generator)
            }
            let text = Self.reference(key)
            #expect(Self.encode(key) == text)
            #expect(Self.decode(Array(text.utf8)) == key)
        }
    }

    @Test func everyByteAtEveryPlaceIsTakenExactlyWhereTheReferenceWritesIt() {
        let text = Array(SampleKeys.own.utf8)
        for place in text.indices {
            for byte in UInt8.min...255 {
                var changed = text
                changed[place] = byte
                let decoded = Self.decode(changed)
                if let decoded {
                    #expect(Array(Self.reference(decoded).utf8) == changed)
                } else {
                    let isLetter =
                        byte < 128
                        && (Character(Unicode.Scalar(byte)).isLetter || Character(Unicode.Scalar(byte)).isNumber)
                    #expect(place >= 42 || !(isLetter || byte == 43 || byte == 47), "\(byte) at \(place)")
                }
            }
        }
    }

    @Test func otherLengthsAreRefused() {
        for count in [0, 1, 43, 45, 88] { #expect(Self.decode([UInt8](repeating: 65, count: count)) == nil) }
    }
}
