import ByteAccess
import DNSMessage
import LDNSMessage
import TestSupport
import Testing

/// Our view and ldns read the same messages.
@Suite struct DifferentialTests {
    /// Answers with a random choice of records, compressed as our writer does it.
    static func message(using random: inout SeededGenerator) throws -> [UInt8] {
        let name = try DomainName(parsing: "example.com")
        return try written {
            var writer = MessageWriter(
                id: UInt16.random(in: 0...(.max), using: &random), flags: [.response, .recursionDesired])
            try writer.append(question: name.view, type: .any, into: &$0)
            for section in [MessageSection.answer, .authority, .additional] {
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    guard let text = RecordTexts.all.randomElement(using: &random) else { continue }
                    try writer.append(ResourceRecord(parsing: text), section: section, into: &$0)
                }
            }
            if Bool.random(using: &random) {
                try writer.append(EDNSFields(dnssecOK: true), responseCode: .noError, into: &$0)
            }
            return try writer.finish(into: &$0)
        }
    }

    static func mutate(_ bytes: inout [UInt8], using random: inout SeededGenerator) {
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let offset = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[offset] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes[offset] = [0, 1, 12, 41, 63, 64, 192, 250, 255][Int.random(in: 0..<9, using: &random)]
            case 3: if bytes.count > 20 { bytes.remove(at: offset) }
            default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: offset)
            }
        }
    }

    @Test func `both readers take what our writer makes, and find the same in it`() throws {
        var random = SeededGenerator(seed: 9460)
        for _ in 0..<1_000 {
            let bytes = try Self.message(using: &random)
            #expect(messageError(bytes) == nil)
            let view = try DNSMessageView(checking: bytes.span.octets)
            do {
                let (ours, theirs) = (ViewAnswerReader().facts(of: view), try LDNSAnswerReader().facts(of: view))
                #expect(ours == theirs)
            } catch LDNSError.unreadableType(let type) {
                #expect(Differences.opaqueTypes.contains(type.rawValue))
            }
        }
    }

    @Test func `mutated messages are taken or refused by both, but for the differences that are listed`() throws {
        var random = SeededGenerator(seed: 317)
        var (stricter, looser) = ([String: Int](), [String: Int]())
        for _ in 0..<20_000 {
            var bytes = try Self.message(using: &random)
            Self.mutate(&bytes, using: &random)
            let accepts = RawLDNS.accepts(bytes)
            if let error = messageError(bytes) {
                if accepts, !Differences.stricterInMutations.contains(error) { stricter["\(error)", default: 0] += 1 }
                continue
            }
            let view = try DNSMessageView(checking: bytes.span.octets)
            do {
                #expect(try LDNSAnswerReader().facts(of: view) == ViewAnswerReader().facts(of: view))
                _ = try LDNSPacket(view).text
            } catch LDNSError.unreadableType(let type) {
                #expect(Differences.opaqueTypes.contains(type.rawValue))
            } catch {
                looser["\(error)", default: 0] += 1
            }
        }
        #expect(stricter == [:])
        #expect(looser == [:])
    }

    @Test func `of malformed answers ldns takes some of exactly the kinds that are listed as differences`() {
        var accepted: Set<DNSMessageError> = []
        for answer in MalformedMessage.answers where RawLDNS.accepts(answer.bytes) {
            if let error = messageError(answer.bytes) { accepted.insert(error) }
        }
        #expect(accepted == Differences.stricter)
    }

    @Test func `of what we take ldns refuses only the data of types that are listed as opaque to us`() throws {
        var random = SeededGenerator(seed: 3597)
        var refused: Set<UInt16> = []
        for type in 1...300 as ClosedRange<UInt16> where type != RecordType.opt.rawValue {
            for _ in 0..<200 {
                let data = random.bytes(Int.random(in: 0...24, using: &random))
                let bytes =
                    hex("abcd 8180 0000 0002 0000 0000 00") + [UInt8(type >> 8), UInt8(type & 0xFF)]
                    + hex("0001 00000000 00") + [UInt8(data.count)] + data
                    // ldns goes on where its fields end: only a record behind them shows whether that is the right place.
                    + hex("00 0001 0001 00000000 0004 c0000201")
                if messageError(bytes) == nil, !RawLDNS.accepts(bytes) { refused.insert(type) }
            }
        }
        #expect(refused == Differences.opaqueTypes)
    }

    @Test func `names that we print are read by ldns to the same octets`() throws {
        var random = SeededGenerator(seed: 4343)
        for _ in 0..<3_000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let label = random.bytes(Int.random(in: 1...30, using: &random))
                bytes += [UInt8(label.count)] + label
            }
            bytes.append(0)
            let name = try DomainNameView(checking: bytes.span.octets, at: 0)
            #expect(RawLDNS.octets(ofName: name.presentation) == bytes)
        }
    }
}
